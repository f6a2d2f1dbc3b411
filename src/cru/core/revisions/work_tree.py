"""A git work tree seen through a repository of cru's own: its index begins as a copy of the project's, its objects lie beside those.
Nothing of the project's repository is written, and none of its hooks, filters and settings is used (docs/decisions/undo.md)."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path

from msgspec import Struct

from cru.core.base.files.atomic import write_private
from cru.core.base.files.regular import make_private_folder, read_regular
from cru.core.base.files.search_path import find_program, own_path
from cru.core.base.process.capture import ByteCapture, TextCapture
from cru.core.base.process.child import Program
from cru.core.base.process.errors import StartError
from cru.core.base.process.run import AT_ONCE, run_program
from cru.core.revisions import RevisionError
from cru.core.revisions.git_repository import GitPlaces, may_convert, read_settings

PREFIX, LIVE = "git-", "live"
MOST_LISTED = 64 << 20
LONGEST_WORDS = 64 << 10
"""Characters of file names that are handed to git as arguments."""
LARGEST_INDEX = 512 << 20
"""Bytes of an index that is read."""
_CONFIG = """\
[core]
\trepositoryformatversion = {version}
\tbare = false
\tfilemode = true
\tsymlinks = true
\tautocrlf = false
\tcompression = 0
\tfsync = none
\tfsmonitor = false
\thooksPath = /dev/null
\tquotePath = false
[gc]
\tauto = 0
"""
_FORMAT = "[extensions]\n\tobjectformat = sha256\n"
_AS_IT_IS = "* -text -eol -filter -ident -working-tree-encoding\n"
"""Attributes that beat every other file of attributes: contents are taken byte for byte, and no program runs over them."""
GITLINK = 0o160000
_GITLINK_MODE = GITLINK.to_bytes(4, "big")
"""As it stands in an index."""


class LookFailed(RevisionError):
    """The work tree could not be looked through; the message says why, for people."""


class IndexedFile(Struct, frozen=True):
    """A file that is not as it was.

    file: absolute
    mode: as git had it, 0 if there was none
    object: its content then
    folders: of a new file: how many folders above it are new, too
    """

    file: str
    mode: int = 0
    object: str = ""
    folders: int = 0


class PrivateIndex:
    """How a work tree was when it was last taken in. Only what lies below the project counts."""

    def __init__(self, places: GitPlaces, root: Path, folder: Path, path: str, seconds: float) -> None:
        """folder: where its repository is made; path: where git is looked for; seconds: for each run of git."""
        self.places = places
        self._root = Path(os.path.realpath(root))
        self._folder = folder / f"{PREFIX}{os.getpid()}-{os.urandom(4).hex()}"
        self._seconds = seconds
        self._lock = -1
        self._may_convert = False
        self._env: Mapping[str, str] = {
            "PATH": own_path(path, str(places.top)), "LC_ALL": "C", "GIT_DIR": str(self._folder), "GIT_WORK_TREE": str(places.top),
            "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_ATTR_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0",
            "GIT_LITERAL_PATHSPECS": "1", "HOME": os.environ.get("HOME", "/"),
        }  # fmt: skip

    async def take_in(self) -> None:
        """From now on changes are told against how the work tree is now. Raises LookFailed."""
        is_new = self._lock < 0
        try:
            if is_new:
                self._make()
        except OSError as error:
            raise LookFailed(f"{error.filename or self._folder}: {error.strerror or error}") from error
        await self._clean_index(is_new)
        await self._git("add", "--all", "--", ".")

    async def _clean_index(self, is_new: bool) -> None:
        """Remove from the index what would make git run programs, or overlook files.

        To compare an entry that is a repository, git asks what has changed in there, with the settings in there, which name programs. One
        that is not in the index is taken in as no more than its commit. Files that are marked `assume-unchanged` or `skip-worktree` are
        changed by commands like others. A new index is a copy of the user's, so it may have such marks.
        """
        try:
            has_repositories = _GITLINK_MODE in read_regular(self._folder / "index", LARGEST_INDEX)
        except FileNotFoundError:
            return
        except OSError as error:
            raise LookFailed(f"{self._folder}: {error.strerror or error}") from error
        if not (is_new or has_repositories):
            return
        listed = read_entries(await self._git("ls-files", "-z", "-v", "--stage", "--", "."))
        for words, names in {
            ("--force-remove",): [name for _, mode, name in listed if mode == GITLINK],
            ("--no-assume-unchanged",): [name for tag, _, name in listed if tag.islower()],
            ("--no-skip-worktree",): [name for tag, _, name in listed if tag in b"Ss"],
        }.items():
            if names:
                await self._git("update-index", "-z", *words, "--stdin", stdin=b"".join(name + b"\0" for name in names))

    async def changed(self) -> tuple[list[str], list[str]]:
        """Return the files that are not as they were taken in, and those that are new; absolute paths. Raises LookFailed."""
        words = ("-t", "--modified", "--others", "--exclude-standard", "--full-name")
        listed = (await self._git("ls-files", "-z", *words, "--", ".")).split(b"\0")
        tracked = [self._path(name[2:]) for name in listed if name.startswith(b"C ")]
        new = [self._path(name[2:]) for name in listed if name.startswith(b"? ") and not name.endswith(b"/")]
        links = [name for name in new if os.path.islink(name)]
        if loop := next(filter(_is_loop, links), ""):
            raise LookFailed(f"git cannot look past a link that leads to itself: {os.path.basename(loop)}")
        if links:
            # `ls-files` finds the files of a folder also through the link that took its place
            asked = ("--name-only", "--no-renames", "--ignore-submodules=all")
            names = (await self._git("diff-files", "-z", *asked, "--", ".")).split(b"\0")
            tracked += [self._path(name) for name in names if name]
        return list(dict.fromkeys(tracked)), new  # git lists a file in conflict once for each side

    async def describe(self, tracked: Sequence[str], new: Sequence[str]) -> list[IndexedFile]:
        """Return how files that `changed` found were taken in; without repositories. Raises LookFailed."""
        files: list[IndexedFile] = []
        if tracked:
            words = ("--raw", "--no-renames", "--ignore-submodules=all", "--abbrev=64")
            fields = (await self._git("diff-files", "-z", *words, "--", *self._pathspecs(tracked))).split(b"\0")
            asked = set(tracked)
            known = [self._known(*pair) for pair in zip(fields[::2], fields[1::2], strict=False)]
            files = [file for file in known if file.mode != GITLINK and file.file in asked]
        has_folders = any(os.path.dirname(name) != str(self.places.top) for name in new)
        folders = await self._new_folders() if has_folders else []
        return files + [
            IndexedFile(name, folders=_count_folders(os.fsencode(self._name(name)), folders)) for name in new
        ]

    def _pathspecs(self, files: Sequence[str]) -> list[str]:
        """Return words by which git finds these files; all of the project if they would be too long for a command line."""
        names = [os.path.relpath(file, self._root) for file in files]
        return names if sum(map(len, names)) < LONGEST_WORDS else ["."]

    async def _new_folders(self) -> list[bytes]:
        """The outermost folders of which nothing was taken in."""
        words = ("--others", "--exclude-standard", "--full-name", "--directory", "--no-empty-directory")
        listed = await self._git("ls-files", "-z", *words, "--", ".")
        return [name for name in listed.split(b"\0") if name.endswith(b"/")]

    async def contents(self, files: Iterable[IndexedFile], most: int) -> dict[str, bytes]:
        """Of each object its content, as it lay in the work tree; of those that are stored otherwise, nothing. Raises LookFailed."""
        known = [file for file in files if file.object]
        if not known:
            return {}
        sizes = await self._sizes(known) if self._may_convert else None
        batch = await self._git(
            "cat-file", "--batch", stdin="\n".join(sorted({file.object for file in known})).encode() + b"\n", most=most
        )
        objects = read_batch(batch)
        return {
            file.object: objects[file.object]
            for file in known
            if file.object in objects
            and (sizes is None or len(objects[file.object]) == sizes.get(self._name(file.file)))
        }

    async def _sizes(self, files: Iterable[IndexedFile]) -> dict[str, int]:
        """Of each file its size in the work tree when it was taken in, by its path below the top."""
        names = self._pathspecs([file.file for file in files])
        return read_sizes(await self._git("ls-files", "-z", "--debug", "--full-name", "--", *names))

    async def ignored(self) -> list[str]:
        """Return the files that git ignores, and with a / at their end the folders of which it ignores everything. Raises LookFailed."""
        words = ("--others", "--ignored", "--exclude-standard", "--full-name", "--directory")
        listed = await self._git("ls-files", "-z", *words, "--", ".")
        return [self._path(name) for name in listed.split(b"\0") if name]

    def remove(self) -> None:
        """Its repository goes."""
        if self._lock >= 0:
            _remove_folder(self._folder)
            os.close(self._lock)
            self._lock = -1

    def _known(self, line: bytes, name: bytes) -> IndexedFile:
        mode, _, before, *_ = line.removeprefix(b":").split(b" ")
        return IndexedFile(self._path(name), int(mode, 8), before.decode())

    def _path(self, name: bytes) -> str:
        return os.path.join(self.places.top, os.fsdecode(name))

    def _name(self, file: str) -> str:
        return os.path.relpath(file, self.places.top)

    def _make(self) -> None:
        _remove_dead(self._folder.parent)
        for part in ("objects/info", "refs", "info"):
            make_private_folder(self._folder / part)
        self._lock = _hold(self._folder / LIVE)
        common = self.places.common
        is_sha256 = b"sha256" in read_settings(common / "config")
        for name, data in {
            "config": (_CONFIG.format(version=int(is_sha256)) + (_FORMAT if is_sha256 else "")).encode(),
            "HEAD": b"ref: refs/heads/none\n",
            "info/attributes": _AS_IT_IS.encode(),
            "info/exclude": read_settings(common / "info/exclude"),
            "objects/info/alternates": os.fsencode(common / "objects") + b"\n",
        }.items():
            write_private(self._folder / name, data)
        self._copy_index(self.places.own / "index")

    def _copy_index(self, index: Path) -> None:
        """With its time, by which git knows what may have changed since."""
        try:
            status, data = os.stat(index), read_regular(index, LARGEST_INDEX)
        except FileNotFoundError:
            return
        copy = self._folder / "index"
        write_private(copy, data)
        os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
        self._may_convert = may_convert(self.places, data)

    async def _git(self, *words: str, stdin: bytes = b"", most: int = MOST_LISTED) -> bytes:
        output, errors = ByteCapture(most, most), TextCapture(limit=2_000)
        git = find_program("git", self._env["PATH"])
        if git is None:
            raise LookFailed("git cannot be started: it is not there")
        program = Program((git, *words), self._root, self._env, stdin)
        try:
            ended = await run_program(program, self._seconds, output, errors, ending=AT_ONCE)
        except StartError as error:
            raise LookFailed(f"git cannot be started: {error.message}") from error
        if ended.timed_out:
            raise LookFailed(f"looking through the work tree took longer than {self._seconds:g} s")
        if output.is_cut:
            raise LookFailed("too much was changed to be kept")
        if ended.exit_status != 0:
            raise LookFailed(f"git {words[0]}: {ended.errors.strip().splitlines()[-1:] or ended.exit_status}")
        return output.content()


def _is_loop(link: str) -> bool:
    try:
        os.stat(link)
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def _count_folders(name: bytes, folders: Iterable[bytes]) -> int:
    return next((name[len(folder) :].count(b"/") + 1 for folder in folders if name.startswith(folder)), 0)


def _hold(path: Path) -> int:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    flock(handle, LOCK_EX)
    return handle


def _remove_folder(folder: Path) -> None:
    """What cannot be removed now is removed by a later session."""
    shutil.rmtree(folder, ignore_errors=True)


def _remove_dead(folder: Path) -> None:
    """What sessions have left that were killed."""
    for place in folder.glob(f"{PREFIX}*"):
        try:
            handle = os.open(place / LIVE, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue  # it is being made, or goes just now
        try:
            flock(handle, LOCK_EX | LOCK_NB)
            _remove_folder(place)
        except BlockingIOError:
            pass  # its session lives
        finally:
            os.close(handle)


def read_entries(listed: bytes) -> Sequence[tuple[bytes, int, bytes]]:
    """Return the tag, the mode and the name of each entry of an index, from `ls-files -z -v --stage`."""
    entries = [entry.partition(b"\t") for entry in listed.split(b"\0") if entry]
    return [(about[:1], int(about[2:].partition(b" ")[0], 8), name) for about, _, name in entries]


def read_sizes(listed: bytes) -> dict[str, int]:
    """Return the size of each file when it was taken in, from `ls-files --debug`."""
    sizes: dict[str, int] = {}
    name, _, rest = listed.partition(b"\0")
    while rest:
        _, _, after = rest.partition(b"  size: ")
        size, _, _ = after.partition(b"\t")
        sizes[os.fsdecode(name)] = int(size)
        _, _, tail = after.partition(b"\n")
        name, _, rest = tail.partition(b"\0")
    return sizes


def read_batch(batch: bytes) -> dict[str, bytes]:
    """Return the content of each blob that exists, from `cat-file --batch`."""
    objects: dict[str, bytes] = {}
    at = 0
    while at < len(batch):
        end = batch.index(b"\n", at)
        name, kind, *size = batch[at:end].split(b" ")
        at = end + 1
        if kind == b"blob":
            objects[name.decode()] = batch[at : at + int(size[0])]
            at += int(size[0]) + 1
    return objects
