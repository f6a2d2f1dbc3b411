"""What waits for the next request: what answers add for the model to read, and the names of the files that they point at."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, field

from cru.engine.parts import Parts
from cru.events.answers import Answer, Inject

HEADING = "## Referenced files"


class PendingContext(Struct):
    """Context and injects that wait for the next request."""

    context: list[str] = field(default_factory=list)
    injects: list[Inject] = field(default_factory=list)

    def add(self, texts: Iterable[str], inject: Inject | None) -> None:
        self.context.extend(texts)
        if inject is not None:
            self.injects.append(inject)

    def drain(self) -> str:
        """Everything as one text, in order; empty afterwards."""
        texts = [*self.context, *(i.content for i in self.injects)]
        self.context.clear()
        self.injects.clear()
        return "\n\n".join(texts)


def context_texts(parts: Parts, answer: Answer) -> list[str]:
    """Context in order, then one block that names the context files (docs/events.md, "What it answers"); no file is read."""
    if not answer.context_files:
        return list(answer.context)
    names = list(_project_files(parts, answer.context_files))
    block = ["\n".join([HEADING, *(f"- {path}" for path in names)])] if names else []
    return [*answer.context, *block]


def _project_files(parts: Parts, paths: Sequence[str]) -> Iterator[str]:
    """Those of the paths that are files of the project, each once, in the spelling that came first."""
    roots = tuple(dict.fromkeys((str(parts.root), os.path.realpath(parts.root))))
    seen: set[str] = set()
    for path in paths:
        try:
            real = os.path.realpath(parts.root / path)
            if _relative_to(real, roots[-1:]) is None:
                parts.bus.stream.warn(f"context file {_printable(path)} lies outside of the project and is left out")
                continue
            why = "" if stat.S_ISREG(os.stat(real).st_mode) else "not a regular file"
        except (OSError, ValueError) as error:  # ValueError: a path with a NUL, or one that cannot be encoded
            why = (error.strerror or "") if isinstance(error, OSError) else str(error)
        if why:
            parts.bus.note("context_files", f"{path}: {why}")
        elif real not in seen:
            seen.add(real)
            yield _printable(_shorten(os.path.normpath(parts.root / path), real, roots))


def _shorten(path: str, real: str, roots: tuple[str, ...]) -> str:
    """Relative to the root as it was spelled, if that is the same file (`link/..` may not be), else as what it really is."""
    spelled = _relative_to(path, roots) if os.path.realpath(path) == real else None
    return spelled or _relative_to(real, roots) or real


def _relative_to(path: str, roots: tuple[str, ...]) -> str | None:
    """The path from the first of these folders that it lies in."""
    for root in roots:
        if path.startswith(root.rstrip("/") + "/"):
            return path[len(root.rstrip("/")) + 1 :]
    return None


def _printable(text: str) -> str:
    """A path that stays on its line, whatever a file may be called."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
