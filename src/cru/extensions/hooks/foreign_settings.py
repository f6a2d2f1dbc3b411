"""What settings of other programs say beside hooks: rules that tighten hold at once; what widens waits until a person accepts the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from cru.extensions.hooks.model.entry import HookSource
from cru.extensions.hooks.model.mapping import ForeignSettings
from cru.permissions import LayerRules, RuleLists
from cru.permissions.trust import TrustStore

FileSettings = tuple[HookSource, ForeignSettings]
NOT_FROM_SETTINGS = "CRU_"
"""Variables with this prefix are cru's own."""


class AcceptedSettings(Struct, frozen=True):
    """What of the files holds.

    rules: of each file
    env: of all files, later ones over earlier ones
    waiting: project files of which a part waits for a person
    """

    rules: Sequence[LayerRules] = ()
    env: Mapping[str, str] = {}
    waiting: Sequence[HookSource] = ()


def accept_settings(
    files: Sequence[FileSettings], store: TrustStore, dialects: frozenset[str], everything: bool = False
) -> AcceptedSettings:
    """dialects: those whose user files a person has accepted; everything: hooks run unaccepted (`--hooks=all`), and so have their
    environment; a project's allow rules still wait."""
    rules: list[LayerRules] = []
    env: dict[str, str] = {}
    waiting: list[HookSource] = []
    for source, settings in files:
        is_trusted = is_accepted(source, store, dialects)
        lists = settings.rules if is_trusted else RuleLists(ask=settings.rules.ask, deny=settings.rules.deny)
        if lists != RuleLists():
            rules.append(LayerRules(source.layer, lists, str(source.path)))
        if is_trusted or everything:
            env |= {name: value for name, value in settings.env.items() if not name.startswith(NOT_FROM_SETTINGS)}
        if settings.widens and not is_trusted and source.layer == "project":
            waiting.append(source)
    return AcceptedSettings(rules, env, waiting)


def is_accepted(source: HookSource, store: TrustStore, dialects: frozenset[str]) -> bool:
    """Whether what widens in a file holds: of a project's after `cru trust`, with this very content."""
    if source.layer == "project":
        return store.is_trusted(source.path, source.text)
    return source.dialect in dialects
