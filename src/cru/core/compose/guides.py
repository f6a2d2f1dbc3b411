"""What reads guides, and what they are called in other programs' settings; loaded where there is a file that may be one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from cru.core.guard.rules.gate import Gate
from cru.core.guard.rules.paths import PathRoots, is_protected, locate, resolve
from cru.core.turn.guides import GuideReader
from cru.core.turn.system_prompt import GuidePlaces, GuideSettings


def make_reader(places: GuidePlaces, settings: GuideSettings, gate: Gate) -> GuideReader:
    """A reader that imports neither protected files nor what a rule denies."""
    roots = replace(
        PathRoots(resolve(places.root), resolve(places.home), resolve(places.user_home)), secrets=gate.places.secrets
    )

    def why_not(path: str) -> str:
        if is_protected(locate(roots, "read", path), roots):
            return "this place is protected"
        verdict = gate.judge("read", "read", path, [("read", path)])
        return verdict.reason if verdict.decision == "deny" or (verdict.explicit and verdict.decision == "ask") else ""

    return GuideReader(places, settings, why_not)


def gemini_names(files: Sequence[Path]) -> Sequence[str]:
    """What settings of Gemini CLI call its guides."""
    from cru.core.hooks.dialects.gemini.context_names import read_context_names

    return read_context_names(files)
