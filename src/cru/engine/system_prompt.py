"""The system prompt: sections in a fixed order, stable ones first, each with its origin (chibi 0.4 order, plus AGENTS.md)."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from cru.contexts.store import ContextStore
from cru.values.messages import Span

GUIDE_NAMES = ("AGENTS.md", "CLAUDE.md")
GUIDE_LIMIT = 64 * 1024


class PromptSources(Struct, frozen=True):
    """Where sections come from. home: the cru home; root: project root; cwd: where the user stands; base: the shipped prompt; agent: the
    card of a sub-agent, whose `base` counts whatever the user's own prompt is; agents: describes sub-agents that the tool does not name."""

    home: Path
    root: Path
    cwd: Path
    user_home: Path
    base: str
    agent: str = ""
    agents: Callable[[], str] = str


def build_sections(store: ContextStore, places: PromptSources, username: str, reflection: bool) -> tuple[Span, ...]:
    """All sections that have text. Reading costs a few file look-ups; called once a leg."""
    return tuple(span for span in _all(store, places, username, reflection) if span.text.strip())


def _all(store: ContextStore, places: PromptSources, username: str, reflection: bool) -> Iterator[Span]:
    yield _base(store, places)
    yield from _guides(places)
    if username != "user":
        yield Span("username", "setting username", f"The user is called {username}.")
    if reflection:
        yield _file("reflection", places.home / "prompts" / "reflection.md", "REFLECTION")
    yield _titled("agents", "agent cards", "AGENTS", places.agents())
    yield _summary(store, places)
    for name in ("goals", "todos"):
        yield _titled(name, str(store.folder / f"{name}.md"), name.upper(), store.read_text(f"{name}.md"))
    yield Span("environment", "this process", f"Working directory: {places.cwd}\nProject root: {places.root}")


def _summary(store: ContextStore, places: PromptSources) -> Span:
    """What is left of the conversation before the last compaction, behind the user's own words on how to go on from it."""
    origin, text = f"context {store.name}: last compaction", store.summary()
    if text.strip():
        path = places.home / "prompts" / "continuation.md"
        words = _read(path).strip()
        if words:
            origin, text = f"{origin}, after {path}", f"{words}\n\n{text.strip()}"
    return _titled("summary", origin, "SUMMARY", text)


def _base(store: ContextStore, places: PromptSources) -> Span:
    if places.agent:
        return Span("base", f"agent {places.agent}", places.base)
    own = store.read_text("system_prompt.md")
    if own.strip():
        return Span("base", str(store.folder / "system_prompt.md"), own.strip())
    for name in ("cru.md", "chibi.md"):
        path = places.home / "prompts" / name
        text = _read(path)
        if text.strip():
            return Span("base", str(path), text.strip())
    return Span("base", "cru", places.base)


def _guides(places: PromptSources) -> Iterator[Span]:
    """AGENTS.md (else CLAUDE.md) of the user's home, the cru home, then each folder from the project root to here."""
    seen: set[Path] = set()
    for folder in (places.user_home, places.home, *_down(places.root, places.cwd)):
        if folder in seen:
            continue
        seen.add(folder)
        for name in GUIDE_NAMES:
            text = _read(folder / name, places.root if folder not in (places.user_home, places.home) else None)
            if text.strip():
                yield _titled("guide", str(folder / name), f"{name} of {folder}", text)
                break


def _down(root: Path, cwd: Path) -> list[Path]:
    chain = [cwd, *cwd.parents]
    return list(reversed(chain[: chain.index(root) + 1])) if root in chain else [root]


def _file(name: str, path: Path, title: str) -> Span:
    return _titled(name, str(path), title, _read(path))


def _titled(name: str, origin: str, title: str, text: str) -> Span:
    return Span(name, origin, f"--- {title} ---\n{text.strip()}" if text.strip() else "")


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _read(path: Path, inside: Path | None = None) -> str:
    """The text of an optional file; one that is there but cannot be read says so in its place. A project's file may not lead out
    of the project (`inside`): a link in a foreign repository could name anything."""
    if (
        inside is not None
        and path.is_symlink()
        and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(inside))
    ):
        return f"[{path} leads out of the project and is not read]"
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return f"[{path} is no file and is not read]"
            data = file.read(GUIDE_LIMIT + 1)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        return f"[{path} could not be read: {error.strerror}]"
    text = data[:GUIDE_LIMIT].decode("utf-8", "replace")
    return f"{text}\n[{path} is cut here, at {GUIDE_LIMIT} bytes]" if len(data) > GUIDE_LIMIT else text
