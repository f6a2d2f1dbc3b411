"""Files of a project that something runs or obeys later without asking: an editor, a shell, git, a build service, the next agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cru.core.base.files import is_inside
from cru.core.guard.places.git_runs import git_runs
from cru.core.guard.shell.programs import PROJECT_FILES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cru.core.guard.rules.paths import JudgedCall, PathRoots, ResolvedPath

_EDITOR = "an editor that opens the folder runs what it says"
_GIT = "git runs what it says"
_WORKSPACE = ".code-workspace"
ASKED = {name: reason for reason, names in PROJECT_FILES.asked.items() for name in names}
"""What is asked about, and why."""
NOTED = {name: program for program, names in PROJECT_FILES.noted.items() for name in names}
"""What belongs to everyday work: the program that runs what such a file says is shown."""

REFLECTION = "update_reflection"


def why_asked(special: str) -> str:
    """What makes changing a file with this special name a question of its own."""
    return ASKED.get(special, _EDITOR if special.endswith(_WORKSPACE) else _GIT)


def special_name(path: ResolvedPath, places: PathRoots) -> str:
    """What of this path makes it one of `ASKED`, or the place below the root in which git runs or obeys it; "" if nothing does."""
    for spelling in (path.real, path.lexical):
        names = _inner_names(spelling, places)
        for at, name in enumerate(names):
            if name in ASKED or name.endswith(_WORKSPACE):
                return name
            pair = "/".join(names[at : at + 2])
            if pair in ASKED:
                return pair
    return next((place for root in places.roots if (place := git_runs(path.real, root))), "")


def note_on(call: JudgedCall, mode: str) -> Iterator[str]:
    """What a person is told of a call that the mode allows."""
    if call.tool == REFLECTION:
        yield "the model changes its reflection, which is part of the system prompt of all contexts (`cru -n reflection` shows it)"
    for path in call.paths if mode == "auto" else ():
        program = NOTED.get(path.real.rpartition("/")[2].casefold())
        if program is not None and path.access == "write":
            yield f"the model may change {path.text} in auto mode; what it says runs with the next `{program}`"


def _inner_names(path: str, places: PathRoots) -> list[str]:
    for root in (*places.roots, places.copy, places.copy_of):
        if root and is_inside(path, root):
            return [name for name in path[len(root.rstrip("/")) :].casefold().split("/") if name]
    return []
