"""What an answer adds for the model to read: its context, and the names of the files that it points at."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence

from cru.engine.parts import Parts
from cru.events.answers import Answer

HEADING = "## Referenced files"


def context_texts(parts: Parts, answer: Answer) -> list[str]:
    """Context in order, then one block that names the context files (docs/events.md, "The answer"); no file is read."""
    if not answer.context_files:
        return list(answer.context)
    named = list(_named(parts, answer.context_files))
    block = ["\n".join([HEADING, *(f"- {path}" for path in named)])] if named else []
    return [*answer.context, *block]


def _named(parts: Parts, paths: Sequence[str]) -> Iterator[str]:
    """Those that are files of the project, each once, in the spelling that came first."""
    roots = tuple(dict.fromkeys((str(parts.root), os.path.realpath(parts.root))))
    seen: set[str] = set()
    for path in paths:
        try:
            real = os.path.realpath(parts.root / path)
            if _below(real, roots[-1:]) is None:
                parts.bus.stream.warn(f"context file {_plain(path)} lies outside of the project and is left out")
                continue
            why = "" if stat.S_ISREG(os.stat(real).st_mode) else "not a regular file"
        except (OSError, ValueError) as error:  # ValueError: a path with a NUL, or one that cannot be encoded
            why = (error.strerror or "") if isinstance(error, OSError) else str(error)
        if why:
            parts.bus.note("context_files", f"{path}: {why}")
        elif real not in seen:
            seen.add(real)
            yield _plain(_shown(os.path.normpath(parts.root / path), real, roots))


def _shown(path: str, real: str, roots: tuple[str, ...]) -> str:
    """Relative to the root as it was spelled, if that is the same file (`link/..` may not be), else as what it really is."""
    spelled = _below(path, roots) if os.path.realpath(path) == real else None
    return spelled or _below(real, roots) or real


def _below(path: str, roots: tuple[str, ...]) -> str | None:
    """The path from the first of these folders that it lies in."""
    for root in roots:
        if path.startswith(root.rstrip("/") + "/"):
            return path[len(root.rstrip("/")) + 1 :]
    return None


def _plain(text: str) -> str:
    """A path that stays on its line, whatever a file may be called."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
