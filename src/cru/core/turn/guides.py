"""Guides: what people write for agents beside their code (AGENTS.md, CLAUDE.md, …), and what these files import."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from cru.core.base.values.messages import Span
from cru.core.guard.rules.gate import Gate
from cru.core.guard.rules.paths import PathRoots, is_protected, locate, resolve
from cru.core.turn.system_prompt import ELSEWHERE, GuidePlaces, GuideSettings, ImportJudge, guide_span, read_guide

if TYPE_CHECKING:
    from cru.core.turn.guide_rules import GuideRule


class GuideReader:
    """Reads guides for one agent."""

    def __init__(self, places: GuidePlaces, settings: GuideSettings, judge: ImportJudge) -> None:
        self._settings = settings
        self._places = places
        self._judge = judge
        self._imported = _Imported()

    def read_all(self, names: Sequence[str]) -> Iterator[Span]:
        """Those of the user, then of each folder from the project root to here."""
        places = self._places
        self._imported = _Imported()
        own = [span for folder in places.own for span in self._folder(folder, None, names)]
        yield from own or self._first(places.user_home, ELSEWHERE, None)
        for folder in places.chain:
            if folder not in places.own:
                yield from self._folder(folder, places.root, names)

    def read_below(self, file: str, folders: Sequence[Path], names: Sequence[str]) -> Iterator[Span]:
        """Those of folders that lie below the project root, and the rules for this file; not what stands in the prompt."""
        self._imported = _Imported()
        above = {os.path.realpath(folder) for folder in self._places.chain}
        for folder in folders:
            if str(folder) not in above:
                yield from self._folder(folder, self._places.root, names)
        if "CLAUDE.md" in names and self._settings.claude_folder:
            yield from self._rules_for(file)

    def _folder(self, folder: Path, inside: Path | None, names: Sequence[str]) -> Iterator[Span]:
        """The first guide with these names, then what Claude Code reads beside it."""
        yield from self._first(folder, names, inside)
        if "CLAUDE.md" not in names or not self._settings.claude_folder:
            return
        claude = self._places.claude_folder if folder == self._places.user_home else folder / ".claude"
        if claude.is_dir():
            yield from self._file(claude / "CLAUDE.md", inside)
            for rule in self._rules(claude, inside):
                if not rule.globs:
                    yield from self._with_imports(rule.path, rule.text, inside)
        if inside is not None:
            yield from self._file(folder / "CLAUDE.local.md", inside)

    def _first(self, folder: Path, names: Sequence[str], inside: Path | None) -> Iterator[Span]:
        for name in names:
            spans = list(self._file(folder / name, inside))
            if spans:
                yield from spans
                return

    def _file(self, path: Path, inside: Path | None) -> Iterator[Span]:
        text = read_guide(path, inside)
        if text.strip():
            yield from self._with_imports(path, text, inside)

    def _with_imports(self, path: Path, text: str, inside: Path | None) -> Iterator[Span]:
        title = f"{path.name} of {path.parent}"
        if self._settings.imports and ("@" in text or "<!--" in text):
            from cru.core.turn.guide_imports import expand_guide

            yield from expand_guide(path, text, title, inside, self._judge, self._imported)
        else:
            yield guide_span(path, title, text)

    def _rules(self, claude: Path, inside: Path | None) -> list[GuideRule]:
        if not os.path.isdir(claude / "rules"):
            return []
        from cru.core.turn.guide_rules import read_rules

        return read_rules(claude / "rules", inside)

    def _rules_for(self, file: str) -> Iterator[Span]:
        """Rules of the user and of the project that name such files."""
        root = self._places.root
        inner = os.path.relpath(file, os.path.realpath(root))
        for claude, inside in ((self._places.claude_folder, None), (root / ".claude", root)):
            for rule in self._rules(claude, inside):
                if rule.covers(inner):
                    yield from self._with_imports(rule.path, rule.text, inside)


class _Imported(Struct):
    """What one look at the guides has imported so far: real paths, and bytes."""

    seen: set[str] = set()
    size: int = 0


def make_reader(places: GuidePlaces, settings: GuideSettings, gate: Gate) -> GuideReader:
    """Return a reader that imports neither protected files nor what a rule denies."""
    roots = replace(
        PathRoots(resolve(places.root), resolve(places.home), resolve(places.user_home)), secrets=gate.places.secrets
    )

    def why_not(path: str) -> str:
        if is_protected(locate(roots, "read", path), roots):
            return "this place is protected"
        verdict = gate.judge("read", "read", path, [("read", path)])
        return verdict.reason if verdict.decision == "deny" or (verdict.explicit and verdict.decision == "ask") else ""

    return GuideReader(places, settings, why_not)
