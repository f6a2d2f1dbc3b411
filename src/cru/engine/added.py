"""What an answer adds for the model to read: its context, and the files that it names."""

from __future__ import annotations

from cru.engine.parts import Parts
from cru.events.answers import Answer


def texts(parts: Parts, answer: Answer) -> list[str]:
    """Context and context files in order, paths relative to the project root; a file that cannot be read is reported."""
    if not answer.context_files:
        return list(answer.context)
    found = list(answer.context)
    for name in answer.context_files:
        path = parts.root / name
        try:
            found.append(f"--- FILE {path} ---\n{path.read_text('utf-8', 'replace')}")
        except (OSError, ValueError) as error:  # ValueError: a path with a NUL
            why = error.strerror if isinstance(error, OSError) else str(error)
            parts.bus.stream.warn(f"context file {path}: {why}")
    return found
