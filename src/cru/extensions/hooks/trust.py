"""Which hooks of a project a person has accepted: each by its definition and by the files that its command names (docs/hooks.md).

A hook is looked at as a whole: every word of its command that is a file, wherever the words stand. One word too many costs a question
after a change; one too few would let a changed script run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from hashlib import sha256

import msgspec
from msgspec import Struct

from cru.config.regular import open_regular
from cru.extensions.hooks.dialect import About
from cru.extensions.hooks.entry import Entry
from cru.permissions.commands import read
from cru.permissions.store import Judged
from cru.permissions.trust import Trust

KEPT = 256 << 10
"""Bytes of a file that are kept to be shown."""
MOST = 4000
"""How many words of a command are looked at; of a longer one the rest is told as unseen."""
TOKEN = re.compile(r"""[^\s"'`;|&<>()]+""")
CHANGES_FOLDER = re.compile(r"""\b(?:cd|pushd)\s+((?:"[^"]*"|'[^']*'|[^\s"';|&()])+)""")
WRITES = re.compile(r"""('[^']*'|"(?:[^"\\]|\\.)*"|\\.)|\d*>>?\|?\s*(?:'[^']*'|"[^"]*"|[^\s;|&<>()]+)""", re.DOTALL)
"""What is quoted, and redirections to files: a hook may write its own log, and that is no reason to ask again."""


class File(Struct, frozen=True):
    """A file that a hook names. digest: SHA-256, "" if it cannot be read · content: its beginning."""

    path: str
    digest: str
    size: int
    content: bytes = b""


class Look(Struct, frozen=True):
    """A hook and the files that it names, as they are now. unseen: what a person cannot be shown · stats: what tells that one of the
    files, or of those that are not there, has changed."""

    fingerprint: str
    files: tuple[File, ...]
    unseen: tuple[str, ...]
    stats: tuple[tuple[str, tuple[int, ...]], ...]


def look(entry: Entry, about: About) -> Look:
    """Read everything that the entry names. What is shown, noted and compared comes from these same bytes."""
    words, unseen = _words(entry, about)
    paths = _candidates(words, entry, about)
    stats = tuple((path, _stat(path)) for path in paths)
    files = tuple(_read(path) for path, stat in stats if stat)
    unseen += [f"{file.path} cannot be read" for file in files if not file.digest]
    named = [(_relative(file.path, about), file.digest) for file in files]
    said = (
        entry.dialect, entry.event, entry.kind, entry.matcher, entry.condition, entry.command, entry.args, entry.shell,
        sorted(entry.env.items()), entry.definition, os.path.realpath(entry.source.path), named,
    )  # fmt: skip
    return Look(sha256(msgspec.json.encode(said)).hexdigest(), files, tuple(dict.fromkeys(unseen)), stats)


class HookTrust:
    """What a person has said about the hooks of this session's project. `problems` as in permissions.trust."""

    def __init__(self, store: Trust, about: About) -> None:
        self.store = store
        self._about = about
        self._said = store.hooks()
        self._looks: dict[str, Look] = {}

    def is_trusted(self, entry: Entry) -> bool:
        return self._judged(entry) is True

    def is_refused(self, entry: Entry) -> bool:
        return self._judged(entry) is False

    def changed(self, entry: Entry) -> str:
        """Why a hook that was trusted when the session read it must not run now; "" if it may."""
        before = self._looks.get(entry.id)
        if before is not None and all(_stat(path) == stat for path, stat in before.stats):
            return ""
        now = look(entry, self._about)
        if before is not None and now.fingerprint != before.fingerprint:
            files = {file.path: file.digest for file in before.files}
            names = [file.path for file in now.files if files.pop(file.path, "") != file.digest] + list(files)
            return f"{', '.join(names)} changed after you trusted it, so the hook does not run (`cru hooks review`)"
        self._looks[entry.id] = now
        return ""

    def note(self, entries: list[tuple[Entry, Look]], *, accepted: bool) -> None:
        """A person has looked, and said so. Raises NotStored."""
        said = {
            look.fingerprint: Judged(accepted, os.path.realpath(entry.source.path), entry.label)
            for entry, look in entries
        }
        self.store.judge_hooks(said)

    def _judged(self, entry: Entry) -> bool | None:
        if not self._said:
            return None
        if entry.id not in self._looks:
            self._looks[entry.id] = look(entry, self._about)
        said = self._said.get(self._looks[entry.id].fingerprint)
        return None if said is None else said.accepted


# which files a command names -----------------------------------------------------------------------------------------------------


def _words(entry: Entry, about: About) -> tuple[list[str], list[str]]:
    """The words that may be files, and what cannot be seen."""
    unseen: list[str] = []
    if entry.args is not None:
        words = [entry.command, *entry.args]
    elif entry.kind == "command":
        words, unseen = _shell_words(entry.command)
    else:
        words = [entry.command, *TOKEN.findall(entry.command)]
    words += entry.env.values()
    parts = [part for word in words for part in (word, word.partition("=")[2], *word.split(":")) if part]
    known = [one for word in dict.fromkeys(parts) for one in _expanded(word, about)]
    unseen += [
        f"{word} is known only when it runs" for word in known if "$" in word and "/" in word and " " not in word
    ]
    if len(known) > MOST:
        unseen.append(f"the command has more than {MOST} words; only these were looked at")
    return known[:MOST], unseen


def _shell_words(command: str) -> tuple[list[str], list[str]]:
    """The words as a shell reads them and, beside them, everything that stands between blanks, quotes and operators."""
    hidden = {f"/.{name}.": f"${name}" for name in _VARIABLES}
    text = WRITES.sub(lambda match: match[1] or " ", command)
    text = _NAMED.sub(lambda match: f"/.{match[1] or match[2]}.", text)
    seen = read(text)
    words = [word for part in seen.parts for word in part] + TOKEN.findall(text)
    for mark, name in hidden.items():
        words = [word.replace(mark, name) for word in words]
    return words, [seen.opaque] if seen.opaque else []


_VARIABLES: dict[str, str] = {
    "CLAUDE_PROJECT_DIR": "root", "GEMINI_PROJECT_DIR": "root", "CRUSH_PROJECT_DIR": "root", "CRU_PROJECT_ROOT": "root",
    "CRUSH_CWD": "cwd", "GEMINI_CWD": "cwd", "PWD": "cwd", "HOME": "user_home", "CRU_HOME": "home",
}  # fmt: skip
"""Variables whose value is known before a hook runs: a fact of the session."""
_NAMED = re.compile(r"\$(?:\{(%s)\}|(%s)(?!\w))" % (("|".join(_VARIABLES),) * 2))


def _expanded(word: str, about: About) -> Iterator[str]:
    """The word with the known variables and the user's home in it."""
    if word.startswith("~/"):
        word = os.path.join(about.user_home, word[2:])
    yield _NAMED.sub(lambda match: str(getattr(about, _VARIABLES[match[1] or match[2]])), word)


def _candidates(words: list[str], entry: Entry, about: About) -> list[str]:
    """The paths that the words may mean; programs that stand on PATH anyway are left out, as if they were called by name."""
    bases = [str(about.cwd / entry.cwd)]
    if entry.kind != "command":
        bases += [str(about.root), str(entry.source.path.parent)]
    for folder in CHANGES_FOLDER.findall(entry.command):
        for target in _expanded(folder.replace('"', "").replace("'", ""), about):
            bases += [os.path.join(base, target) for base in bases[:8]]
    found = dict.fromkeys(
        _joined(base, word)
        for word in words
        if "\0" not in word and len(word) < 4096
        for base in (bases if not word.startswith("/") else bases[:1])
    )
    programs = {folder for folder in about.env.get("PATH", "").split(os.pathsep) if folder.startswith("/")}
    return [path for path in found if not (os.path.dirname(path) in programs and not _inside(path, about))]


def _joined(base: str, word: str) -> str:
    """`..` behind a link leads elsewhere than in the text, so such a path stays as it is."""
    path = os.path.join(base, word)
    return path if ".." in path else os.path.normpath(path)


def _inside(path: str, about: About) -> bool:
    return os.path.normpath(path).startswith(str(about.root).rstrip(os.sep) + os.sep)


def _relative(path: str, about: About) -> str:
    """As the same file is called wherever in the project the user stands."""
    return os.path.relpath(path, about.root) if _inside(path, about) else path


def _stat(path: str) -> tuple[int, ...]:
    """What tells that a file has changed; () if there is no regular file."""
    from stat import S_ISREG

    try:
        about = os.stat(path)
    except (OSError, ValueError):
        return ()
    if not S_ISREG(about.st_mode):
        return ()
    return (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)


def _read(path: str) -> File:
    digest, size, beginning = sha256(), 0, b""
    try:
        with open(open_regular(path), "rb", buffering=0) as file:
            while piece := file.read(1 << 20):
                beginning = beginning or piece[:KEPT]
                size += len(piece)
                digest.update(piece)
    except OSError:
        return File(path, "", 0)
    return File(path, digest.hexdigest(), size, beginning)
