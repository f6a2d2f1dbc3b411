"""What settings of other programs say beside hooks: rules that tighten hold at once; what widens waits until a person accepts the file."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from cru.core.guard.rules import LayerRules, RuleLists
from cru.core.guard.trust.accepted_files import TrustStore
from cru.core.hooks.model.entry import HookSource
from cru.core.hooks.model.mapping import ForeignSettings

FileSettings = tuple[HookSource, ForeignSettings]
NOT_FROM_SETTINGS = "CRU_"
"""Variables with this prefix are cru's own."""


class AcceptedSettings(Struct, frozen=True):
    """What of the files holds.

    rules: of each file
    env: of all files, later ones over earlier ones
    folders: of all files
    waiting: project files of which a part waits for a person
    """

    rules: Sequence[LayerRules] = ()
    env: Mapping[str, str] = {}
    folders: Sequence[str] = ()
    waiting: Sequence[HookSource] = ()


def accept_settings(
    files: Sequence[FileSettings], store: TrustStore, dialects: frozenset[str], everything: bool = False
) -> AcceptedSettings:
    """dialects: those whose user files a person has accepted; everything: hooks run unaccepted (`--hooks=all`), and so have their
    environment; a project's allow rules still wait."""
    rules: list[LayerRules] = []
    env: dict[str, str] = {}
    folders: list[str] = []
    waiting: list[HookSource] = []
    for source, settings in files:
        is_trusted = is_accepted(source, store, dialects)
        lists = settings.rules if is_trusted else RuleLists(ask=settings.rules.ask, deny=settings.rules.deny)
        if lists != RuleLists():
            rules.append(LayerRules(source.layer, lists, str(source.path), "", source.dialect, settings.lines))
        if is_trusted or everything:
            env |= {name: value for name, value in settings.env.items() if not name.startswith(NOT_FROM_SETTINGS)}
        folders += settings.folders if is_trusted else ()
        if settings.widens and not is_trusted and source.layer == "project":
            waiting.append(source)
    return AcceptedSettings(rules, env, folders, waiting)


def is_accepted(source: HookSource, store: TrustStore, dialects: frozenset[str]) -> bool:
    """Whether what widens in a file holds: of a project's after `cru trust`, with this very content."""
    if source.layer == "project":
        return store.is_trusted(source.path, source.text)
    return source.dialect in dialects


class LostRules(Struct, frozen=True):
    """Rules that held and do not stand in their file now.

    held: of files that cannot be used as they are; as settings, to go on with
    gone: of files that can, or that are not there: the file and the rule, for a person
    """

    held: Sequence[FileSettings] = ()
    gone: Sequence[str] = ()


def find_lost_rules(
    before: Sequence[FileSettings], now: Sequence[FileSettings], unreadable: Collection[Path], broken: Collection[Path]
) -> LostRules:
    """What tightened and would end. unreadable: files of which nothing counts; broken: files of which a part does not."""
    held: list[FileSettings] = []
    gone: list[str] = []
    for source, settings in before:
        if source.path in unreadable:
            held.append((source, settings))
            continue
        present = [present.rules for other, present in now if other.path == source.path]
        denied = {rule for rules in present for rule in rules.deny}
        asked = {rule for rules in present for rule in rules.ask}
        deny = tuple(rule for rule in settings.rules.deny if rule not in denied)
        ask = tuple(rule for rule in settings.rules.ask if rule not in asked | denied)
        if source.path in broken and (deny or ask):
            held.append((source, ForeignSettings(rules=RuleLists(ask=ask, deny=deny), lines=settings.lines)))
        else:
            gone += [
                f"{source.path}: {decision} {rule}"
                for decision, rules in (("deny", deny), ("ask", ask))
                for rule in rules
            ]
    return LostRules(held, gone)
