"""What commands change in a git work tree: taken back with the turn, and nothing of the person's repository is touched."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from tests.core.turn import test_undo
from tests.core.turn.test_undo import write

from cru.core.events.stream import CommandSaid
from cru.core.guard.shell.readers import only_reads
from cru.core.revisions.git_repository import find_git, read_head
from cru.core.revisions.work_tree import read_batch, read_sizes

MINE = {"GIT_CONFIG_GLOBAL": "/dev/null", "PATH": os.environ["PATH"], "HOME": "/nowhere"}


class Desk(test_undo.Desk):
    def type(self, *texts: str) -> list[str]:
        """Each call is a run of its own: what commands changed is known at its end."""

        async def run() -> None:
            for text in texts:
                self.session.submit(text)
                await self.session.run()
            if keeper := self.session.parts.services.changes.known:
                await keeper.close()
            for close in self.session.parts.services.lifecycle.closing:
                await close()

        begun = len(self.of(CommandSaid))
        asyncio.run(run())
        return [said.text for said in self.of(CommandSaid)[begun:]]


def git(folder: Path, *words: str) -> str:
    argv = ("git", "-c", "user.email=a@b", "-c", "user.name=me", *words)
    return subprocess.run(argv, cwd=folder, env=MINE, check=True, capture_output=True, text=True).stdout


def bash(command: str, **more: object) -> str:
    return f"call: bash {json.dumps({'command': command, **more})}\n"


def script(*turns: str) -> str:
    return "by: order\n" + "---\n".join(f"{calls}---\ntext: done\n" for calls in turns)


def repository(root: Path, *options: str) -> Path:
    root.mkdir(exist_ok=True, parents=True)
    git(root, "init", "-q", *options)
    (root / "kept").write_text("kept\n")
    (root / "gone").write_text("gone\n")
    (root / "tool.sh").write_text("#!/bin/sh\n")
    (root / "link").symlink_to("kept")
    (root / "caf\udce9").write_text("bytes\n")
    (root / ".gitignore").write_text("built/\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    (root / "draft").write_text("not committed\n")
    return root


def look(root: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below a folder: its mode and content; of a link where it leads."""
    files: dict[str, tuple[int, bytes]] = {}
    for folder, folders, names in os.walk(root):
        for name in (*names, *(f for f in folders if os.path.islink(os.path.join(folder, f)))):
            path = os.path.join(folder, name)
            data = os.fsencode(os.readlink(path)) if os.path.islink(path) else Path(path).read_bytes()
            files[os.path.relpath(path, root)] = (stat.S_IMODE(os.lstat(path).st_mode), data)
    return files


def work_tree(root: Path) -> dict[str, tuple[int, bytes]]:
    return {name: value for name, value in look(root).items() if not name.startswith(".git/")}


ALL = (
    "echo changed > kept; rm gone; chmod +x tool.sh; ln -sf gone link; mkdir -p new/deep; echo n > new/deep/file; echo more >> draft; "
    "printf 'a\\0b' > binary; echo x > $(printf 'caf\\351'); echo new > $(printf 'n\\377')"
)


def test_all_that_a_command_did_is_taken_back_and_comes_again(tmp_path: Path) -> None:
    root = repository(tmp_path / "project")
    desk = Desk(tmp_path, script(bash(ALL)))
    desk.a.unlink()
    before, repo = work_tree(root), look(root / ".git")
    desk.type("go")
    desk = Desk(tmp_path, "")  # another run on the same context
    changed = work_tree(root)
    assert len(changed.keys() ^ before.keys()) == 4 and changed["kept"][1] == b"changed\n"
    [shown] = desk.type("/undo")
    assert work_tree(root) == before and not (root / "new").exists()
    assert "cannot be taken back" not in shown and "draft" in shown
    desk.type("/redo")
    assert work_tree(root) == changed
    assert look(root / ".git") == repo, "the person's repository is as it was"


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("--assume-unchanged",), id="assumed unchanged"),
        pytest.param(("--skip-worktree",), id="not in the work tree"),
        pytest.param(("--index-version", "4", "--skip-worktree"), id="names packed"),
    ],
)
def test_files_that_git_is_asked_to_overlook_come_back(tmp_path: Path, words: tuple[str, ...]) -> None:
    root = repository(tmp_path / "project")
    (root / "kept").write_text("settings of my own\n")
    git(root, "update-index", *words, "kept", "gone")
    before, repo = work_tree(root), look(root / ".git")
    desk = Desk(tmp_path, script(bash("echo broken > kept; rm gone")))
    desk.a.unlink()
    before.pop("a", None)
    desk.type("go", "/undo")
    assert work_tree(root) == before and look(root / ".git") == repo


def test_between_commands_and_tools_the_first_state_counts(tmp_path: Path) -> None:
    root = repository(tmp_path / "project")
    calls = (
        bash("echo 1 >> kept")
        + write("kept", "2\n")
        + bash("echo 3 >> kept")
        + write("fresh", "f\n")
        + bash("rm fresh")
    )
    desk = Desk(tmp_path, script(calls, bash("echo 4 >> kept")))
    desk.a.unlink()
    before = work_tree(root)
    shown = desk.type("go", "more", "/diff all", "/undo", "/undo")
    assert shown[0].endswith("@@ -1 +1,3 @@\n-kept\n+2\n+3\n+4")
    assert "files: kept\n" in shown[1] and work_tree(root) == before


def test_whatever_needs_to_know_what_commands_changed_does_not_wait_for_a_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cru.core.revisions.commands.PAUSE", 3600.0)
    monkeypatch.setattr("cru.core.revisions.commands.LONGEST", 3600.0)
    root = repository(tmp_path / "project")
    first = bash("echo 1 >> kept") + bash("echo 2 >> kept") + write("fresh", "f\n") + bash("rm fresh; echo 3 >> kept")
    desk = Desk(tmp_path, script(first, bash("echo 4 >> kept")))
    desk.a.unlink()
    before = work_tree(root)
    diff, *undone = desk.type("go", "/diff", "more", "/undo", "/undo")
    assert diff.endswith("@@ -1 +1,4 @@\n kept\n+1\n+2\n+3") and work_tree(root) == before
    assert not any("cannot be taken back" in shown for shown in undone)


def test_what_a_person_changed_between_turns_is_theirs(tmp_path: Path) -> None:
    root = repository(tmp_path / "project")
    desk = Desk(tmp_path, script(bash("echo 1 > one"), bash("echo 2 > two")))

    desk.type("first", "/diff")
    (root / "kept").write_text("mine\n")
    desk.type("second", "/diff", "/undo", "/undo")
    assert (root / "kept").read_text() == "mine\n" and not (root / "one").exists() and not (root / "two").exists()


def test_no_hook_filter_monitor_or_setting_of_the_repository_runs(tmp_path: Path) -> None:
    root = repository(tmp_path / "project")
    mark = tmp_path / "ran"
    tell = f"sh -c 'echo $0 >> {mark}; cat' "
    for name, value in {
        "filter.spy.clean": f"{tell} clean", "filter.spy.smudge": f"{tell} smudge", "core.fsmonitor": f"{tell} monitor",
        "core.autocrlf": "true", "core.hooksPath": str(tmp_path / "hooks"), "diff.external": f"{tell} diff",
    }.items():  # fmt: skip
        git(root, "config", name, value)
    (tmp_path / "hooks").mkdir()
    hook = tmp_path / "hooks/post-index-change"
    hook.write_text(f"#!/bin/sh\necho hook >> {mark}\n")
    hook.chmod(0o755)
    (root / ".gitattributes").write_text("draft filter=spy\nkept filter=spy text\n")
    desk = Desk(tmp_path, script(bash("echo crlf > draft; echo more >> kept")))
    desk.a.unlink()
    before = work_tree(root)
    desk.type("go", "/undo")
    assert work_tree(root) == before and not mark.exists()


def test_what_git_stores_in_another_form_is_named_not_guessed(tmp_path: Path) -> None:
    root = repository(tmp_path / "project")
    (root / ".gitattributes").write_text("*.txt text eol=crlf\n")
    (root / "lines.txt").write_bytes(b"a\r\nb\r\n")
    git(root, "add", "-A")
    os.utime(root / "lines.txt", (1, 1))
    git(root, "add", "-A")
    desk = Desk(tmp_path, script(bash("echo other > lines.txt")))
    shown = desk.type("go", "/undo")[-1]
    assert (
        "not taken back: lines.txt (git has it in another form only)" in shown
        and (root / "lines.txt").read_text() == "other\n"
    )


def test_a_worktree_and_a_project_below_the_top_work_as_well(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    git(main, "worktree", "add", "-q", str(tmp_path / "wt"))
    (tmp_path / "wt/project").mkdir()
    (tmp_path / "project").symlink_to(tmp_path / "wt/project")
    desk = Desk(tmp_path, script(bash("echo below > b; echo above > ../kept")))
    repo = look(main / ".git")
    places = find_git(tmp_path / "project")
    assert places is not None and places.own == main / ".git/worktrees/wt" and places.common == main / ".git"
    desk.type("go", "/undo")
    assert not (tmp_path / "wt/project/b").exists()
    assert (tmp_path / "wt/kept").read_text() == "above\n", "outside of the project nothing is looked at"
    assert look(main / ".git") == repo


def test_a_repository_with_sha256_and_one_without_a_commit(tmp_path: Path) -> None:
    for number, options in enumerate((("--object-format=sha256",), ())):
        path = tmp_path / str(number)
        path.mkdir()
        root = repository(path / "project", *options) if options else path / "project"
        if not options:
            root.mkdir()
            git(root, "init", "-q")
            (root / "kept").write_text("kept\n")
        desk = Desk(path, script(bash("echo x > kept; echo y > new")))
        desk.type("go", "/undo")
        assert (root / "kept").read_text() == "kept\n" and not (root / "new").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "command", "more", "why"),
    [
        ({}, "for i in $(seq 1001); do echo $i > f$i; done", {}, "1,001 files were changed"),
        ({}, "true > kept; sleep 0", {"background": True}, "it went on in the background"),
        ({"max_total_mb": 1}, "seq 200000 > kept; rm big", {}, "too much was changed to be kept"),
    ],
)
def test_what_is_too_much_is_named_with_the_reason(
    tmp_path: Path, settings: dict[str, object], command: str, more: dict[str, object], why: str
) -> None:
    root = repository(tmp_path / "project")
    (root / "big").write_bytes(os.urandom(1_000_000))
    git(root, "add", "-A")
    desk = Desk(tmp_path, script(bash(command, **more)), settings={"undo": settings})
    shown = desk.type("go", "/undo 2")[-1]
    assert f"commands ran that cannot be taken back: `{command}` ({why})" in shown


def test_a_look_that_takes_too_long_is_named(tmp_path: Path) -> None:
    repository(tmp_path / "project")
    slow = tmp_path / "slow"
    slow.mkdir()
    (slow / "git").write_text(f'#!/bin/sh\nsleep 5\nexec {shutil.which("git")} "$@"\n')
    (slow / "git").chmod(0o755)
    desk = Desk(tmp_path, script(bash("echo x > kept")), settings={"undo": {"command_seconds": 0.05}})
    path = f"{slow}:{os.environ['PATH']}"
    desk.session.parts.tool_services.commands.own_env = lambda root: {"PATH": path}
    shown = desk.type("go", "/undo")[-1]
    why = "looking through the work tree took longer than 0.05 s"
    assert f"commands ran that cannot be taken back: `echo x > kept` ({why})" in shown


def test_without_git_everything_works_and_the_command_is_named(tmp_path: Path) -> None:
    root = repository(tmp_path / "project")
    (tmp_path / "bin").mkdir()
    for name in ("bash", "sh"):
        (tmp_path / "bin" / name).symlink_to("/bin/bash")
    desk = Desk(tmp_path, script(bash("echo x > kept")))
    desk.session.parts.tool_services.commands.own_env = lambda root: {"PATH": str(tmp_path / "bin")}
    shown = desk.type("go", "/undo")[-1]
    assert "commands ran that cannot be taken back: `echo x > kept` (git cannot be started" in shown
    assert (root / "kept").read_text() == "x\n"


def test_a_commit_stays_and_is_told(tmp_path: Path) -> None:
    root = repository(tmp_path / "project")
    command = "echo x > kept && git -c user.email=a -c user.name=b commit -qam second"
    desk = Desk(tmp_path, script(bash(command)))
    shown = desk.type("go", "/undo")[-1]
    assert "HEAD" in shown and (root / "kept").read_text() == "kept\n"
    assert git(root, "log", "--format=%s").splitlines() == ["second", "first"]


def test_what_is_ignored_is_not_looked_at(tmp_path: Path) -> None:
    root = repository(tmp_path / "project")
    desk = Desk(tmp_path, script(bash("mkdir built; echo o > built/out")))
    shown = desk.type("go", "/undo")[-1]
    assert (root / "built/out").exists() and "files" not in shown


def test_commands_that_only_read_cost_nothing(tmp_path: Path) -> None:
    repository(tmp_path / "project")
    desk = Desk(tmp_path, script(bash("cat kept | grep k; git status 2>/dev/null && ls")))
    shown = desk.type("go", "/undo")[-1]
    assert shown == "1 turn is taken back: “go”\n/redo brings it again, until the next prompt"
    assert not list((tmp_path / "home/revisions").glob("*/commands.jsonl"))


def test_its_repository_goes_with_the_session_and_those_of_killed_ones_before(tmp_path: Path) -> None:
    repository(tmp_path / "project")
    desk = Desk(tmp_path, script(bash("echo x > kept")))
    [folder] = [desk.session.parts.services.changes.keeper().store.folder]  # type: ignore[union-attr]
    dead = folder / "git-1-dead"
    dead.mkdir(parents=True)
    (dead / "live").touch()

    async def run() -> list[str]:
        desk.session.submit("go")
        await desk.session.run()
        there = [path.name for path in folder.glob("git-*")]
        await desk.session.close()
        return there

    [name] = asyncio.run(run())
    assert name.startswith(f"git-{os.getpid()}-") and not list(folder.glob("git-*"))


@pytest.mark.parametrize(
    ("command", "reads"),
    [
        ("ls -la", True),
        ("cat a | head -3 && git log --oneline 2>&1", True),
        ("/bin/ls; pwd", True),
        ("rg x 2>/dev/null", True),
        ("echo x > a", False),
        ("cat a | tee b", False),
        ("uniq a b", False),
        ("rg --pre ./x y", False),
        ("git diff --output=x", False),
        ("git checkout x", False),
        ("$(cat x)", False),
        ("cat $x", False),
        ("sed -i s/a/b/ c", False),
        ("make", False),
        ("find . -delete", False),
        ("PAGER=./x git log", False),
        ("", False),
    ],
)
def test_only_what_certainly_reads_counts_as_reading(command: str, reads: bool) -> None:
    assert only_reads(command) is reads


def test_what_git_prints_is_read() -> None:
    debug = b"a b\0  ctime: 1:2\n  dev: 1\tino: 2\n  size: 7\tflags: 0\nc\0  ctime: 1:2\n  size: 0\tflags: 1\n"
    assert list(read_sizes(debug).items()) == [("a b", 7), ("c", 0)]
    assert read_batch(b"aa blob 3\nx\ny\nbb missing\ncc blob 0\n\n") == {"aa": b"x\ny", "cc": b""}
    assert read_sizes(b"") == {} and read_batch(b"") == {}


def test_head_is_read_from_loose_and_packed_refs(tmp_path: Path) -> None:
    root = repository(tmp_path / "project")
    places = find_git(root)
    assert places is not None
    loose = read_head(places)
    git(root, "pack-refs", "--all")
    packed = read_head(places)
    commit = git(root, "rev-parse", "HEAD").strip()
    assert commit in loose and commit in packed
    git(root, "checkout", "-q", "--detach")
    assert read_head(places) == commit
    assert find_git(tmp_path / "nowhere") is None
