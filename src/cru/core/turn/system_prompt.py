"""The system prompt: sections in a fixed order, stable ones first, each with its origin (chibi 0.4 order, plus AGENTS.md)."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from cru.core.base.files import is_inside
from cru.core.base.values.messages import Span
from cru.core.conversations.store import ContextStore
from cru.core.turn.history import History

GUIDE_LIMIT = 64 * 1024
"""Bytes of one guide."""
ELSEWHERE = (".codex/AGENTS.md", ".gemini/GEMINI.md", ".config/crush/CRUSH.md")
"""Guides that a person wrote for all projects, for other programs, below the home; the first counts, if there is none for cru."""


class GuideSettings(Struct, frozen=True):
    """`[guides]`: which files of people are read as guides."""

    files: tuple[str, ...] = ("AGENTS.md", "CLAUDE.md", "GEMINI.md", "CRUSH.md")
    claude_folder: bool = True
    imports: bool = True
    subfolders: bool = True


ImportJudge = Callable[[str], str]
"""Why a file may not be imported, "" if it may."""


class GuidePlaces(Struct, frozen=True):
    """home: the cru home; root: project root; cwd: where the user stands; claude_home: the user's folder of Claude Code, None: `.claude`
    in the user's home"""

    home: Path
    user_home: Path
    root: Path
    cwd: Path
    claude_home: Path | None = None

    @property
    def claude_folder(self) -> Path:
        """The user's folder of Claude Code."""
        return self.claude_home or self.user_home / ".claude"

    @property
    def own(self) -> tuple[Path, ...]:
        """The user's folders."""
        return tuple(dict.fromkeys((self.user_home, self.home)))

    @property
    def chain(self) -> list[Path]:
        """The folders from the project root to here."""
        above = [self.cwd, *self.cwd.parents]
        return list(reversed(above[: above.index(self.root) + 1])) if self.root in above else [self.root]


class ReadsGuides(Protocol):
    """What is loaded when there is a guide (`GuideReader`)."""

    def read_all(self, names: Sequence[str]) -> Iterable[Span]: ...

    def read_below(self, file: str, folders: Sequence[Path], names: Sequence[str]) -> Iterable[Span]: ...


class Guides:
    """The guides of one agent; nothing of them is loaded before there is a file that may be one. load: makes what reads them;
    more_names: further names, from other programs' settings."""

    def __init__(
        self,
        places: GuidePlaces,
        settings: GuideSettings,
        load: Callable[[], ReadsGuides],
        more_names: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self.places = places
        self.settings = settings
        self.given: set[str] = set()
        self.history: object = None
        self._load = load
        self._more_names = more_names

    def read_all(self) -> Iterable[Span]:
        """Those of the user, then of each folder from the project root to here."""
        names, places = self._names(), self.places
        folders = (*places.own, *places.chain)
        elsewhere = (*(places.user_home / name for name in ELSEWHERE), places.claude_home)
        is_there = any(_may_have(folder, names) for folder in folders) or any(map(_exists, elsewhere))
        return self._load().read_all(names) if names and is_there else ()

    def read_below(self, file: str) -> Iterable[Span]:
        """Those of the folders between the prompt's and this file, and the rules for such files."""
        root = os.path.realpath(self.places.root)
        if not self.settings.subfolders or not is_inside(file, root):
            return ()
        names = self._names()
        folders = [Path(root, part) for part in _parts_below(file, root)]
        rules = (os.path.join(at, "rules") for at in (self.places.claude_folder, os.path.join(root, ".claude")))
        is_there = any(map(_exists, rules)) or any(_may_have(folder, names) for folder in folders)
        return self._load().read_below(file, folders, names) if names and is_there else ()

    def _names(self) -> Sequence[str]:
        """What guides are called here."""
        files = self.settings.files
        return (*files, *self._more_names()) if "GEMINI.md" in files else files


def _may_have(folder: Path, names: Sequence[str]) -> bool:
    """Whether something lies in a folder for which the reader is needed."""
    return any(_exists(os.path.join(folder, name)) for name in (*names, ".claude", "CLAUDE.local.md"))


def _exists(path: str | Path | None) -> bool:
    return path is not None and os.path.lexists(path)


def _parts_below(file: str, root: str) -> Iterator[str]:
    """The folders of a file below the root, from above."""
    start = len(root.rstrip(os.sep)) + 1
    at = file.find(os.sep, start)
    while at >= 0:
        yield file[start:at]
        at = file.find(os.sep, at + 1)


class PromptSources(Struct, frozen=True):
    """Where sections come from. home: the cru home; root: project root; cwd: where the user stands; base: the shipped prompt; agent: the
    card of a sub-agent, whose `base` counts whatever the user's own prompt is; agents: describes sub-agents that the tool does not name;
    guides: None: there are none."""

    home: Path
    root: Path
    cwd: Path
    user_home: Path
    base: str
    agent: str = ""
    agents: Callable[[], str] = str
    guides: Guides | None = None
    skills: Callable[[], Span] | None = None


def build_sections(store: ContextStore, places: PromptSources, username: str, reflection: bool) -> tuple[Span, ...]:
    """All sections that have text. Reading costs a few file look-ups; called once a leg."""
    return tuple(span for span in _all(store, places, username, reflection) if span.text.strip())


def _all(store: ContextStore, places: PromptSources, username: str, reflection: bool) -> Iterator[Span]:
    yield _base(store, places)
    if places.guides is not None:
        yield from places.guides.read_all()
    if username != "user":
        yield Span("username", "setting username", f"The user is called {username}.")
    if reflection:
        yield _file("reflection", places.home / "prompts" / "reflection.md", "REFLECTION")
    yield _titled("agents", "agent cards", "AGENTS", places.agents())
    if places.skills is not None:
        yield places.skills()
    yield _summary(store, places)
    for name in ("goals", "todos"):
        yield _titled(name, str(store.folder / f"{name}.md"), name.upper(), store.read_text(f"{name}.md"))
    text = f"Working directory of tools: the project root\nProject root: {places.root}\nThe user started cru in: {places.cwd}"
    yield Span("environment", "this process", text)


def _summary(store: ContextStore, places: PromptSources) -> Span:
    """What is left of the conversation before the last compaction, behind the user's own words on how to go on from it."""
    origin, text = f"context {store.name}: last compaction", store.summary()
    if text.strip():
        path = places.home / "prompts" / "continuation.md"
        words = read_guide(path).strip()
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
        text = read_guide(path)
        if text.strip():
            return Span("base", str(path), text.strip())
    return Span("base", "cru", places.base)


def _file(name: str, path: Path, title: str) -> Span:
    return _titled(name, str(path), title, read_guide(path))


def _titled(name: str, origin: str, title: str, text: str) -> Span:
    return Span(name, origin, f"--- {title} ---\n{text.strip()}" if text.strip() else "")


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def leads_out(path: Path, inside: Path) -> bool:
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(inside))


def read_guide(path: Path, inside: Path | None = None) -> str:
    """The text of an optional file; one that is there but cannot be read says so in its place. A project's file may not lead out
    of the project (`inside`): a link in a foreign repository could name anything."""
    if inside is not None and os.path.lexists(path) and leads_out(path, inside):
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


def guides_of_call(guides: Guides | None, history: History, tool: str, paths: Sequence[str]) -> list[str]:
    """The guides that go with what a call has read, unless the model has them in sight."""
    if guides is None or tool != "read":
        return []
    texts = []
    for span in (span for path in paths for span in guides.read_below(path)):
        heading = span.text.partition("\n")[0]
        if guides.history is not history:
            guides.history = history
            guides.given = {line for message in history.messages() for line in _headings(message.content)}
        if heading not in guides.given:
            guides.given.add(heading)
            texts.append(span.text)
    return texts


def _headings(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.startswith("--- ")] if "\n--- " in text else []


def guide_span(path: Path, title: str, text: str) -> Span:
    return Span("guide", str(path), f"--- {title} ---\n{text.strip()}")
