"""Allow rules on shell commands: each program that a command runs must be covered, and nothing be uncertain."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Protocol, TypeVar

from cru.files import glob
from cru.permissions.command_rules import allowed_text, names_uses
from cru.permissions.paths import JudgedCall, PathRoots, is_inside
from cru.shell.analysis import CommandAnalysis, analyze
from cru.shell.programs import names
from cru.shell.simplify import Folder, simplify


class PatternRule(Protocol):
    """What is wanted of a rule."""

    @property
    def pattern(self) -> str | None: ...
    @property
    def pieces(self) -> glob.StarGlob: ...


AnyRule = TypeVar("AnyRule", bound=PatternRule)
_OF_OTHERS = names(
    "node_modules bower_components vendor venv env site-packages dist-packages third_party target build dist"
)
"""Folders whose code is not the project's own."""


def find_command_rule(rules: Sequence[AnyRule], call: JudgedCall, places: PathRoots | None) -> AnyRule | None:
    """The rule that covers the command, the last one needed if it takes several: one without a star that is the whole command, or rules
    for all that it runs. places: of where it runs, whose folders it may enter without a rule; None: it is no command of its own"""
    whole = next((rule for rule in rules if rule.pieces == (call.detail.strip(),)), None)
    covering = whole or _find_covering(rules, call.command)
    if covering is None and places is not None and (text := simplify(call.detail, partial(folder_of, places=places))):
        covering = _find_covering(rules, analyze(text))
    return covering


def bare_command(call: JudgedCall, places: PathRoots) -> CommandAnalysis:
    """The command as it is run in the project's root, without what changes nothing; as it is, if that is not one program."""
    if call.command.opaque or len(call.command.parts) != 1:
        only_root = partial(folder_of, places=places)
        text = simplify(
            call.detail, lambda path: folder if (folder := only_root(path)) is Folder.ROOT else Folder.OTHER
        )
        if text and len((bare := analyze(text)).parts) == 1 and not bare.opaque:
            return bare
    return call.command


def _find_covering(rules: Sequence[AnyRule], command: CommandAnalysis) -> AnyRule | None:
    if command.opaque:
        return None
    covering = None
    for words, uses in zip(command.parts, command.uses, strict=True):
        text = allowed_text(words)
        matching = (rule for rule in rules if matches_command(rule.pieces, text))
        covering = next((rule for rule in matching if names_uses(rule.pattern or "", uses)), None)
        if covering is None:
            return None
    return covering


def matches_command(pattern: glob.StarGlob, text: str) -> bool:
    """Whether it matches; a closing " *" may also stand for nothing at all."""
    return glob.matches_text(pattern, text) or (pattern[-1] == "" and glob.matches_text(pattern, text + " "))


def folder_of(path: str, places: PathRoots) -> Folder:
    """What `cd` leads to from the project's root. Another repository decides what git runs there, and packages of others are none of the
    project's code."""
    if ".." in path.split("/") or (os.environ.get("CDPATH") and not path.startswith("/")):
        return Folder.OTHER
    real = os.path.realpath(os.path.join(places.root, path))
    if real == places.root:
        return Folder.ROOT
    if not is_inside(real, places.root) or not os.path.isdir(real):
        return Folder.OTHER
    folder = places.root
    for name in os.path.relpath(real, places.root).split("/"):
        folder = os.path.join(folder, name)
        if name.startswith(".") or name.casefold() in _OF_OTHERS or _is_repository(folder):
            return Folder.OTHER
    return Folder.INSIDE


def _is_repository(folder: str) -> bool:
    return os.path.lexists(os.path.join(folder, ".git")) or os.path.lexists(os.path.join(folder, "HEAD"))
