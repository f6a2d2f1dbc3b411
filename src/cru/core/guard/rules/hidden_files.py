"""What a tool that may look through a folder must not show of it: every file in it is judged as if it were read by itself."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from msgspec import Struct

from cru.core.base.files.glob import literal_path_glob
from cru.core.base.files.selection import NOTHING, FileSelection, either, without
from cru.core.guard.places.path_set import PathSet, fold
from cru.core.guard.rules.paths import (
    SECRET_AT_HOME,
    SECRET_PLACES,
    JudgedCall,
    PathRoots,
    is_protected,
)
from cru.core.guard.rules.rules import Rule, allowed_paths, matched_paths, names_call, rule_hits

if TYPE_CHECKING:
    from collections.abc import Sequence


class HiddenReason(Enum):
    """Why a file is not shown.

    DENIED: a rule forbids to read it
    UNASKED: reading it needs a question, and the question about the folder was not about it
    """

    DENIED = "denied"
    UNASKED = "unasked"


class HiddenFiles(Struct, frozen=True):
    """Files by absolute paths without links.

    denied: what rules forbid to read
    asked: what rules want a question for
    secret: protected places
    opened: what of those may be read all the same
    """

    denied: PathSet | None = None
    asked: PathSet | None = None
    secret: PathSet | None = None
    opened: tuple[PathSet, ...] = ()

    def below(self, folder: str) -> FileSelection:
        """The files below this folder that must not be shown."""
        selection: FileSelection = self.secret.below(folder) if self.secret else NOTHING
        for opened in self.opened:
            selection = without(selection, opened.below(folder))
        for guarded in (self.asked, self.denied):
            selection = either(guarded.below(folder), selection) if guarded else selection
        return selection

    def why(self, file: str) -> HiddenReason | None:
        """Why this file must not be shown, None if it may be."""
        if self.denied is not None and file in self.denied:
            return HiddenReason.DENIED
        if self.asked is not None and file in self.asked:
            return HiddenReason.UNASKED
        if self.secret is not None and file in self.secret and not any(file in files for files in self.opened):
            return HiddenReason.UNASKED
        return None


class RuleSets(Struct, frozen=True):
    """The rules of a gate by what they decide; `allow` with the answers that are kept."""

    deny: Sequence[Rule] = ()
    ask: Sequence[Rule] = ()
    allow: Sequence[Rule] = ()


def find_hidden_files(call: JudgedCall, rules: RuleSets, places: PathRoots, *, with_places: bool) -> HiddenFiles | None:
    """What this call, which may look through the one folder that it names, must not show; None if that is nothing. A rule or a
    protected place that the question about the folder was about hides nothing.

    with_places: protected places lie below the folder, and the mode asks about them
    """
    reading = JudgedCall("read", "read", "")
    names = (reading, call)
    deny = [rule for rule in rules.deny if any(names_call(rule, name) for name in names)]
    ask = [
        rule
        for rule in rules.ask
        if any(names_call(rule, name) for name in names) and not rule_hits(rule, call, places)
    ]
    secret: PathSet | None = None
    opened: tuple[PathSet, ...] = ()
    if with_places and not is_protected(call.paths[0], places):
        allow = [rule for rule in rules.allow if any(names_call(rule, name) for name in names)]
        secret, opened = _secret_paths(places), _opened_paths(allow, places)
    if not (deny or ask or secret):
        return None
    return HiddenFiles(matched_paths(deny, places), matched_paths(ask, places), secret, opened)


def _secret_paths(places: PathRoots) -> PathSet:
    at_home = [f"{places.user_home.rstrip('/')}/{name}" for name in SECRET_AT_HOME]
    paths = dict.fromkeys(fold(path) for path in (places.home, *at_home, *SECRET_PLACES, *places.secrets))
    return PathSet(tuple(literal_path_glob(path) for path in paths))


def _opened_paths(allow: Sequence[Rule], places: PathRoots) -> tuple[PathSet, ...]:
    readable = PathSet(tuple(literal_path_glob(fold(folder)) for folder in places.readable))
    globs = allowed_paths(allow, places)
    return (readable, PathSet(globs, is_exact=True)) if globs else (readable,)
