"""The first context of a project: its name is taken once, alone among processes, and a person is told what else could be gone on with."""

from __future__ import annotations

from pathlib import Path

from cru.core.conversations.entries import ARCHIVE, LOG
from cru.core.conversations.projects import earlier_context, read_records, set_current, stem_of
from cru.core.conversations.state import CONTEXTS, load_state, name_for, update_state


def claim_context(home: Path, project: str) -> str:
    """Write down which context is the project's own, unless another process has by now. Returns what a person is to know, "" = nothing.
    Raises StoreUnwritable."""
    earlier: list[tuple[str, str]] = []

    def edit(state: dict[str, object], session: dict[str, object]) -> None:
        records = read_records(session)
        if project not in records:
            earlier.append(earlier_context(records, project))
            set_current(session, project, name_for(home, project, state, session), None)

    update_state(home, edit)
    return _others(home, project, *earlier[0]) if earlier else ""


def _others(home: Path, project: str, old_root: str, earlier: str) -> str:
    state = load_state(home, project)
    reasons = {earlier: f"that of {old_root}, which is no more"} if earlier else {}
    reasons.setdefault(state.outside, "the one outside of projects")
    reasons.setdefault(stem_of(project), "an older one of that name")
    known = [(name, why) for name, why in reasons.items() if name != state.current and _has_log(home, name)]
    if not known:
        return ""
    ways = "; ".join(f"`cru -c {name}` goes on with {why}" for name, why in known)
    return f"this project has a conversation of its own from now on: {state.current}; {ways}"


def _has_log(home: Path, name: str) -> bool:
    return any((home / CONTEXTS / name / file).exists() for file in (LOG, ARCHIVE))
