"""A git worktree of a sub-agent's own: its changes are shown at the end, and kept as a patch; the folder goes."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cru.core.agents import TaskError
from cru.core.agents.record import PATCH, WorktreeRecord
from cru.core.base.files import is_inside
from cru.core.base.files.atomic import replace_file, write_private
from cru.core.base.files.regular import make_private_folder, read_regular
from cru.core.base.files.search_path import find_program, own_env
from cru.core.base.process.capture import TextCapture
from cru.core.base.process.child import Program
from cru.core.base.process.errors import StartError
from cru.core.base.process.run import run_program

SECONDS = 120.0
SHOWN = 20_000
"""Characters of a diff that the parent gets; the whole is in the patch."""
LARGEST = 256 << 20
PREFIX = "cru-worktree-"
STEP = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
OWN = "git"
"""The folder of a task in which cru's own git has an index while it works."""
# What the repository's own settings name would run with the worktree; nobody has asked for that.
_GIT = (
    "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", "-c", "submodule.recurse=false",
    "-c", "core.splitIndex=false", "-c", "core.sshCommand=false", "-c", "credential.helper=", "-c", "gc.auto=0",
    "-c", "maintenance.auto=false",
)  # fmt: skip
_FILTERS = re.compile(r"git-lfs (clean -- %f|smudge( --skip)? -- %f|filter-process( --skip)?)")
"""What Git LFS writes into the settings of a repository."""
_NO_NETWORK = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
"""Objects that are not there are not fetched: settings say from where, and with which program."""
_PATCH_OPTIONS = (
    "--binary", "--no-ext-diff", "--no-textconv", "--no-color", "--no-relative", "--submodule=short", "--ignore-submodules=dirty",
    "--src-prefix=a/", "--dst-prefix=b/",
)  # fmt: skip
"""So that `git apply` can read it, however the person likes to look at diffs. What is not committed in a repository within is not looked
for: git would ask there, with the settings there, which name programs."""
_OF_ANOTHER_REPOSITORY = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_NAMESPACE",
)  # fmt: skip
"""Variables that git sets for its hooks: in a run that one of them has started they would lead to the project's own index."""
_REPOSITORY = re.compile(r"^(?:new file mode 160000|[+-]Subproject commit )", re.MULTILINE)
"""A repository in the worktree, of which a patch has no more than the commit."""


class GitApart(Struct, frozen=True):
    """Where git looks that takes its settings from the project alone, and nothing from what a worktree has of git: commands that are
    confined, and began before it was there, may have written that.

    own: a folder with an index
    common: what all worktrees of the repository share
    path: the worktree
    """

    own: str
    common: str
    path: str


class Worktree(Struct, frozen=True):
    """A copy of all that a repository's last commit has, and so of the project in it.

    path: its folder
    project: the root of the project that it was made for
    base: the commit that it began with
    patch: where its changes are kept
    is_behind: the project had changes that are not in it
    inner: the project's place in the working tree, "" if it is all of it
    """

    path: Path
    project: Path
    base: str
    patch: Path
    env: Mapping[str, str]
    is_behind: bool = False
    inner: str = ""

    @classmethod
    def of_record(cls, known: WorktreeRecord, task_folder: Path, env: Mapping[str, str]) -> Worktree:
        """One that a run has left behind."""
        return cls(
            Path(known.path), Path(known.project), known.base, task_folder / PATCH, env, known.is_behind, known.inner
        )

    @classmethod
    async def add(
        cls, project: Path, task_folder: Path, env: Mapping[str, str], announce: Callable[[WorktreeRecord], object]
    ) -> Worktree:
        """From the last commit; what is not committed is not in it. It is announced before anything of it is there, so that a kill leaves
        nothing that nobody knows of. Raises TaskError, OSError."""
        if any(part.startswith(PREFIX) for part in project.parts):  # what it has of git, others may have written
            raise TaskError(
                "an agent in a worktree starts none in a worktree of their own",
                "leave `isolation` out: it works in the same one",
            )
        await _refuse_filters(project, env)
        base = (await _git(project, env, "rev-parse", "--verify", "HEAD^{commit}")).strip()
        # into submodules it would go with their settings
        changed = await _git(project, env, "status", "--porcelain", "--untracked-files=no", "--ignore-submodules=dirty")
        inner = await _inner(project, env, base)
        path = _temporary_folder(project) / f"{_prefix(task_folder.name)}{os.urandom(4).hex()}" / project.name
        known = WorktreeRecord(str(path), str(project), base, bool(changed.strip()), inner=inner)
        announce(known)
        path.parent.mkdir(mode=0o700)
        try:
            with ExitStack() as undone:  # when it is cancelled, too: nobody else knows of it
                for folder in (path.parent, task_folder / OWN):
                    undone.callback(shutil.rmtree, folder, ignore_errors=True)
                await _git(project, env, "worktree", "add", "--no-checkout", "--detach", str(path), base)
                await _check_out(project, path, base, task_folder / OWN, env)
                undone.pop_all()
        except (TaskError, OSError):
            with suppress(TaskError):  # what went wrong first is told
                await _git(project, env, "worktree", "prune")
            raise
        announce(replace(known, is_ready=True))
        return cls(path, project, base, task_folder / PATCH, env, bool(changed.strip()), inner)

    @property
    def root(self) -> Path:
        """The project's copy: all else of the worktree is outside of the project, as it is in the repository."""
        return self.path / self.inner

    def is_ours(self, task_id: str) -> bool:
        """Whether its folder is one that `add` makes for this task: it is going to be removed."""
        return self.path.parent.name.startswith(_prefix(task_id)) and not self.path.parent.is_symlink()

    async def recover(self, is_ready: bool) -> str:
        """The same as `finish` for one whose run was killed at any moment, also while it was made or taken away."""
        if is_ready and (self.path / ".git").exists():
            return await self.finish()
        shutil.rmtree(self.patch.parent / OWN, ignore_errors=True)
        try:
            await _git(self.project, self.env, "worktree", "remove", "--force", "--force", str(self.path))
        except TaskError:
            await _git(self.project, self.env, "worktree", "prune")
        shutil.rmtree(self.path.parent, ignore_errors=True)
        return self._describe(read_patch(self.patch))

    async def finish(self) -> str:
        """Keep the changes as a patch and take the folder away; what the parent is told, "" if nothing changed. What cannot be kept
        stays in the folder, which is named."""
        own = self.patch.parent / OWN
        try:
            apart = await _find_apart(self.project, self.path, self.base, own, self.env)
            known = await _known_repositories(self.path, self.env, apart)
            others = [f":(exclude,top,literal){name}" for name in known]
            await _git(
                self.path, self.env, "add", "--all", "--force", "--intent-to-add", "--", ".", *others, apart=apart
            )
            diff = await _git(self.path, self.env, "diff", *_PATCH_OPTIONS, self.base, apart=apart)
            if diff:
                replace_file(self.patch, diff.encode("utf-8", "surrogateescape"), make_folders=True)
        except (TaskError, OSError) as error:
            return f"[the changes could not be kept as a patch ({error}); they are in {self.path}]"
        finally:
            shutil.rmtree(own, ignore_errors=True)
        if _REPOSITORY.search(diff) or any((self.path / name / ".git").exists() for name in known):
            return self._describe(
                diff, f"is still at {self.path}: there is a repository in it, which a patch cannot hold"
            )
        try:
            await _git(self.project, self.env, "worktree", "remove", "--force", str(self.path))
        except TaskError as error:
            return self._describe(diff, f"is still at {self.path}: {error.message}")
        shutil.rmtree(self.path.parent, ignore_errors=True)
        return self._describe(diff)

    def _describe(self, diff: str, whereabouts: str = "is gone") -> str:
        if not diff:
            return f"[the worktree was not changed; it {whereabouts}]"
        behind = " What is not committed in the project was not in it." if self.is_behind else ""
        shown = diff if len(diff) <= SHOWN else f"{diff[:SHOWN]}\n[… the rest is in the file]"
        return (
            f"[it worked in a git worktree of its own, which {whereabouts}; nothing of the project has changed.{behind} Its changes, "
            f"which `{self._apply_command()}` takes over:]\n{shown}"
        )

    def _apply_command(self) -> str:
        """In a folder below the top, git would leave out what is not in it."""
        if not self.inner:
            return f"git apply {self.patch}"
        top = str(self.project.resolve()).removesuffix(f"/{self.inner}") or "/"
        return shlex.join(("git", "-C", top, "apply", str(self.patch)))


async def _make_apart(project: Path, path: Path, base: str, own: Path, env: Mapping[str, str]) -> GitApart:
    """own: a folder for its index. Raises TaskError, OSError."""
    common = await _common_folder(project, env)
    shutil.rmtree(own, ignore_errors=True)
    make_private_folder(own)
    write_private(own / "HEAD", f"{base}\n".encode())
    await _copy_sparse(project, common, own, env)
    return GitApart(str(own), common, str(path))


async def _copy_sparse(project: Path, common: str, own: Path, env: Mapping[str, str]) -> None:
    """What of the project is checked out, and its settings for one work tree: they lie beside the settings of all, and are guarded like
    them."""
    folder = (await _git(project, env, "rev-parse", "--path-format=absolute", "--git-dir")).removesuffix("\n")
    if os.path.realpath(folder) != os.path.realpath(common):
        return
    for name in ("config.worktree", "info/sparse-checkout"):
        try:
            data = read_regular(Path(folder, name))
        except FileNotFoundError:
            continue
        make_private_folder((own / name).parent)
        write_private(own / name, data)


async def _check_out(project: Path, path: Path, base: str, own: Path, env: Mapping[str, str]) -> None:
    """The files of a worktree that has none yet, and the index that the agent's own git looks at. Raises TaskError, OSError."""
    apart = await _make_apart(project, path, base, own, env)
    await _git(path, env, "read-tree", "--reset", "-u", base, apart=apart)
    folder = Path((await _git(path, env, "rev-parse", "--path-format=absolute", "--git-dir")).removesuffix("\n"))
    if folder.parent != Path(apart.common, "worktrees"):
        raise TaskError(f"{path}/.git leads to {folder}", "something has changed it since it was made")
    _put_index((own / "index").read_bytes(), apart.common, folder.name)


async def _find_apart(project: Path, path: Path, base: str, own: Path, env: Mapping[str, str]) -> GitApart:
    """That with which the files were checked out: its index knows them. Raises TaskError, OSError."""
    if not (own / "index").is_file():
        apart = await _make_apart(project, path, base, own, env)
        await _git(path, env, "read-tree", base, apart=apart)
        return apart
    (own / "index.lock").unlink(missing_ok=True)
    return GitApart(str(own), await _common_folder(project, env), str(path))


async def _common_folder(project: Path, env: Mapping[str, str]) -> str:
    return (await _git(project, env, "rev-parse", "--path-format=absolute", "--git-common-dir")).removesuffix("\n")


async def _inner(project: Path, env: Mapping[str, str], base: str) -> str:
    """The project's place in its repository's working tree, "" if it is all of it. Raises TaskError if the commit has no such folder."""
    inner = (await _git(project, env, "rev-parse", "--show-prefix")).removesuffix("\n").rstrip("/")
    if inner and (await _git(project, env, "cat-file", "-t", f"{base}:{inner}")).strip() != "tree":
        raise TaskError(f"{inner} is no folder in the last commit", "a worktree has only what is committed")
    return inner


async def _known_repositories(path: Path, env: Mapping[str, str], apart: GitApart) -> list[str]:
    """Submodules, and what else of a worktree is a repository of its own, as far as its commit knows it."""
    listed = await _git(path, env, "ls-files", "-z", "--stage", apart=apart)
    entries = [entry.partition("\t") for entry in listed.split("\0")]
    return [name for about, _, name in entries if about.startswith("160000 ")]


async def _refuse_filters(project: Path, env: Mapping[str, str]) -> None:
    """Programs that a repository's own settings put between its files and a working tree would run with each new one. Raises TaskError."""
    listed = await _git(project, env, "config", "--null", "--show-scope", "--list")
    fields = listed.split("\0")
    for scope, setting in zip(fields[::2], fields[1::2], strict=False):
        key, _, value = setting.partition("\n")
        is_filter = key.startswith("filter.") and key.endswith((".clean", ".smudge", ".process"))
        if scope in ("local", "worktree") and is_filter and value and not _FILTERS.fullmatch(value):
            raise TaskError(
                f"the repository's own settings run a program over its files ({key}), and a worktree would run it unasked",
                "move that setting into your own with `git config --global` if you want it",
            )


def _put_index(data: bytes, common: str, name: str) -> None:
    """Into a worktree's folder of git, step by step, since confined commands can write there: no link is followed. Raises OSError."""
    handles = [os.open(os.path.realpath(common), STEP)]
    try:
        for step in ("worktrees", name):
            handles.append(os.open(step, STEP | os.O_NOFOLLOW, dir_fd=handles[-1]))
        new = f"index.{os.urandom(8).hex()}"
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=handles[-1])
        with open(handle, "wb") as file:
            file.write(data)
        os.rename(new, "index", src_dir_fd=handles[-1], dst_dir_fd=handles[-1])
    finally:
        for handle in handles:
            os.close(handle)


def _temporary_folder(project: Path) -> Path:
    """Not in the project: commands in the sandbox could put something else in its place. Raises TaskError."""
    root = os.path.realpath(project)
    for folder in (tempfile.gettempdir(), "/tmp", "/var/tmp"):
        if root == "/" or not is_inside(os.path.realpath(folder), root):
            return Path(folder)
    raise TaskError("each folder for temporary files lies in the project", "set TMPDIR to one beside it")


def _prefix(task_id: str) -> str:
    return f"{PREFIX}{task_id}-"


def read_patch(patch: Path) -> str:
    """The changes that were kept, "" if none were."""
    try:
        return read_regular(patch).decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return ""


async def _git(folder: Path, env: Mapping[str, str], *words: str, apart: GitApart | None = None) -> str:
    """What git prints. Raises TaskError with what it complains about."""
    output, errors = TextCapture(limit=LARGEST, errors="surrogateescape"), TextCapture(limit=SHOWN)
    own = {name: value for name, value in own_env(env, str(folder)).items() if name not in _OF_ANOTHER_REPOSITORY}
    if apart is not None:
        own |= {"GIT_DIR": apart.own, "GIT_COMMON_DIR": apart.common, "GIT_WORK_TREE": apart.path}
    quiet = {**own, **_NO_NETWORK, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_PAGER": "cat"}
    program = find_program("git", own["PATH"])
    if program is None:
        raise TaskError("git is not there", "a worktree needs git")
    try:
        ended = await run_program(Program((program, *_GIT, *words), folder, quiet), SECONDS, output, errors)
    except StartError as error:
        raise TaskError(f"git cannot be started: {error.message}", "a worktree needs git") from error
    if ended.timed_out or ended.exit_status != 0 or ended.is_cut:
        why = "it took too long" if ended.timed_out else ended.errors.strip() or f"exit code {ended.exit_status}"
        raise TaskError(
            f"git {words[0]} in {folder}: {why}", "isolation `worktree` needs a git repository with a commit"
        )
    return ended.output
