"""Hostile checkouts: files of a repository that never end or are none, repositories that do not lie in `.git`, programs that settings of a
repository name, and programs of its own that stand where cru looks for git and ripgrep."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.attacks.playing import REFUSED, play, rules
from tests.kit import Call, HomeDir, Received, Reply, cru, home, server

GIT_FILES = (
    (".git/index", "pipe"), (".git/index", "endless"), (".git/config", "pipe"), (".git/config", "endless"),
    (".git/info/exclude", "pipe"), (".git/HEAD", "pipe"),
    (".git/refs/heads/main", "pipe"), (".git/config.worktree", "endless"), (".git", "4 GiB"),
    (".git", "pipe"), (".git/commondir", "pipe"), (".gitignore", "endless"), ("inner/.gitignore", "endless"), (".git/packed-refs", "loop"),
)  # fmt: skip


def repository(folder: Path) -> None:
    """One with a commit."""
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-qm", "x", "--allow-empty")):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x", *words], cwd=folder, check=True)


def put(path: Path, kind: str) -> None:
    """What is there makes room for something that a reader should not read."""
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "4 GiB":
        with path.open("wb") as file:
            os.truncate(file.fileno(), 4 << 30)
    else:
        path.symlink_to("/dev/zero" if kind == "endless" else path.name)


@pytest.mark.sample(3)
@pytest.mark.parametrize(("name", "kind"), GIT_FILES, ids=map(" ".join, GIT_FILES))
def test_files_of_a_repository_that_are_none_stop_nobody(tmp_path: Path, name: str, kind: str) -> None:
    def plant(here: HomeDir) -> None:
        (here.project / "a.txt").write_text("crown\n")
        repository(here.project)
        put(here.project / name, kind)

    calls = [
        Call("bash", {"command": "echo more >>a.txt"}), Call("write", {"file_path": "b.txt", "content": "crown"}),
        Call("grep", {"pattern": "crown"}), Call("glob", {"pattern": "*.txt"}),
    ]  # fmt: skip
    played = play(tmp_path, calls, mode="trust", plant=plant)
    assert played.done.code == 0 and "MemoryError" not in played.done.err
    assert played.results[:2] == ["(no output)", "Created b.txt (1 line, 5 bytes)."]
    assert played.results[2].splitlines()[0] == "a.txt:1:crown" and set(played.results[3].split()) == {"a.txt", "b.txt"}


@pytest.mark.parametrize("name", ["pipe", "socket", "sparse", "pipe.png", "endless"])
@pytest.mark.parametrize("tool", ["read", "grep", "edit", "write"])
def test_what_is_no_file_keeps_no_tool_waiting(tmp_path: Path, tool: str, name: str) -> None:
    """The calls of one run, each judged by its own row."""
    played = _special_files(tmp_path)
    text = played[tool, name]
    refused = ("not a regular file", "is a binary file", "is larger than", "is outside the project folder")
    assert any(words in text for words in refused) or (tool, name) == ("write", "sparse"), text


_PLAYED: dict[tuple[str, str], str] = {}


def _special_files(folder: Path) -> dict[tuple[str, str], str]:
    """Played once."""
    if not _PLAYED:
        import socket

        def plant(here: HomeDir) -> None:
            for name in ("pipe", "pipe.png"):
                os.mkfifo(here.project / name)
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(str(here.project / "socket"))
            put(here.project / "sparse", "4 GiB")
            put(here.project / "endless", "endless")

        names = ("pipe", "socket", "sparse", "pipe.png", "endless")
        made = {
            "read": lambda name: {"file_path": name},
            "grep": lambda name: {"pattern": "x", "path": name},
            "edit": lambda name: {"file_path": name, "old_string": "x", "new_string": "y"},
            "write": lambda name: {"file_path": name, "content": "y"},
        }
        rows = [(tool, name) for name in names for tool in made]
        played = play(folder, [Call(tool, made[tool](name)) for tool, name in rows], mode="auto", plant=plant)
        _PLAYED.update(zip(rows, played.results, strict=True))
    return _PLAYED


def test_a_pipe_is_not_attached_and_one_that_a_shell_hands_over_is(tmp_path: Path) -> None:
    with server([Reply("done")]) as model:
        here = home(tmp_path, url=model.url)
        os.mkfifo(here.project / "README.md")
        refused = cru("--attach", "README.md", "go", home=here)
        assert refused.code == 2 and "it is a pipe" in refused.err
        command = "cru --attach <(echo 'the text of a command') go"
        done = subprocess.run(["bash", "-c", command], env=here.env, cwd=here.project, capture_output=True, timeout=60)
        assert done.returncode == 0 and b"the text of a command" in model.requests[0].raw


# repositories that do not lie in .git ---------------------------------------------------------------------------------------------

SETTINGS = """\
[core]
\thooksPath = tools/hooks ; here
\tfsmonitor = "tools/monitor.sh" --quick
\tattributesFile = tools/attributes
[include]
\tpath = ../tools/more.ini
[filter "x"]
\tclean = python3 tools/clean.py %f
[alias]
\tgo = !sh tools/go.sh
[diff "d"]
\ttextconv = 'tools/text conv.sh'
\tcommand = tools/diff.sh
[credential]
\thelper = "!tools/helper.sh"
[remote "origin"]
\turl = tools/plain.txt
"""
MORE = "[pager]\n\tlog = tools/pager.sh\n"
PLACES = (
    "tools/hooks/pre-commit", "tools/hooks/new", "tools/monitor.sh", "tools/attributes", "tools/more.ini", "tools/clean.py", "tools/go.sh",
    "tools/diff.sh", "tools/helper.sh", "tools/pager.sh", "way/hooks/post-checkout",
)  # fmt: skip
INNER = ("vendor/lib/checks/pre-commit", "vendor/lib/.meta/config", "VENDOR/lib/src/a.py")
"""Of a repository in the project, and a file of it that is only a file."""
BARE = (
    "bare/config",
    "bare/hooks/post-update",
    "bare/info/attributes",
    "bare/new",
    "inner/deep/meta/hooks/x",
    "inner/deep/meta/config",
)
PLAIN = ("tools/plain.txt", "tools/other.py", "src/HEAD", "objects/x", "bare2/config", "inner/deep/x")


def _plant_settings(here: HomeDir) -> None:
    repository(here.project)
    for name in (*PLACES[2:-1], "tools/plain.txt", "bare/HEAD", "inner/deep/meta/HEAD"):
        (here.project / name).parent.mkdir(parents=True, exist_ok=True)
        (here.project / name).write_text(MORE if name.endswith(".ini") else "old")
    (here.project / "way").symlink_to("tools")
    (here.project / "vendor/lib/.meta").mkdir(parents=True)
    (here.project / "vendor/lib/.git").write_text("gitdir: .meta\n")
    (here.project / "vendor/lib/.meta/config").write_text("[core]\n\thooksPath = checks\n")
    for folder in ("bare", "inner/deep/meta"):
        for name in ("objects", "refs"):
            (here.project / folder / name).mkdir()
    with (here.project / ".git/config").open("a") as file:
        file.write(SETTINGS)


@pytest.mark.sample(1)
@pytest.mark.parametrize("allowed", [False, True])
def test_what_git_runs_is_asked_about_wherever_it_lies(tmp_path: Path, allowed: bool) -> None:
    paths = (*PLACES, *BARE, *INNER, *PLAIN)
    config = rules(allow=["write:tools/hooks/*", "write:bare/**", "write:**"] if allowed else [])
    played = play(tmp_path, [Call("write", {"file_path": path, "content": "x"}) for path in paths], mode="auto", config=config,
                  plant=_plant_settings)  # fmt: skip
    written = [path for path, text in zip(paths, played.results, strict=True) if not text.startswith(REFUSED)]
    named = ["tools/hooks/pre-commit", "tools/hooks/new", "way/hooks/post-checkout", *BARE[:4]] if allowed else []
    assert written == [path for path in paths if path in named or path in PLAIN or path == INNER[-1]]
    assert all("git runs what it says" in text for text in played.results if text.startswith(REFUSED))


LAYOUTS = {
    "a bare repository beside its work tree": ("gitdir: ./.bare\n", ".bare", ""),
    "a repository in a folder with another name": ("gitdir: meta/repo", "meta/repo", ""),
    "a file that names a folder which is not there yet": ("gitdir: later", "later", ""),
    "settings that several work trees share": ("gitdir: a/own", "shared", "a/own"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_git_file_says_where_the_repository_is(tmp_path: Path, layout: str) -> None:
    text, folder, own = LAYOUTS[layout]

    def plant(here: HomeDir) -> None:
        (here.project / ".git").write_text(text)
        if own:
            (here.project / own).mkdir(parents=True)
            (here.project / own / "commondir").write_text(f"../../{folder}\n")

    paths = [f"{folder}/{name}" for name in ("config", "hooks/pre-commit", "info/attributes", "HEAD")]
    played = play(
        tmp_path,
        [Call("write", {"file_path": path, "content": "x"}) for path in (*paths, "a.txt")],
        mode="auto",
        plant=plant,
    )
    assert [result.startswith(REFUSED) for result in played.results] == [True] * 4 + [False]


# git that cru itself starts -------------------------------------------------------------------------------------------------------

QUIET = """\
[core]
\thooksPath = tools
\tfsmonitor = "touch PWNED; false"
\tsshCommand = touch PWNED
\tpager = touch PWNED
\teditor = touch PWNED
[diff]
\texternal = touch PWNED
[diff "d"]
\ttextconv = touch PWNED
[alias]
\tstatus = !touch PWNED
[gpg]
\tprogram = touch PWNED
[submodule]
\trecurse = true
[submodule "inner"]
\tactive = true
\tupdate = !touch PWNED
[credential]
\thelper = !touch PWNED
[remote "origin"]
\turl = ext::touch PWNED
\tpromisor = true
\tpartialclonefilter = blob:none
\tuploadpack = touch PWNED
"""
FILTERS = {
    "smudge": '[filter "x"]\n\tsmudge = touch PWNED; cat\n', "clean": '[filter "x"]\n\tclean = "touch PWNED; cat"\n',
    "process": '[filter "x"]\n\tprocess = touch PWNED\n', "in a file that is included": "[include]\n\tpath = ../more\n",
    "in the settings of the work tree": "[extensions]\n\tworktreeConfig = true\n", "none": QUIET,
    "Git LFS": '[filter "lfs"]\n\tsmudge = git-lfs smudge -- %f\n\tprocess = git-lfs filter-process\n',
}  # fmt: skip


def _worktree(request: Received) -> Reply:
    messages = request.body["messages"]
    if any(message["role"] == "tool" for message in messages) or "the work" in str(messages[-1]["content"]):
        return Reply("done")
    return Reply(calls=[Call("task", {"agent": "general", "prompt": "the work", "isolation": "worktree"})])


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", FILTERS)
def test_a_worktree_runs_nothing_that_the_repository_names(tmp_path: Path, name: str) -> None:
    with server(_worktree) as model:
        here = home(tmp_path, url=model.url)
        (here.project / "a.txt").write_text("x")
        (here.project / "b.txt").write_text("x")
        (here.project / ".gitattributes").write_text("a.txt filter=x diff=d\n")
        (here.project / "more").write_text(FILTERS["smudge"])
        (here.project / "tools").mkdir()
        for hook in ("post-checkout", "post-index-change", "reference-transaction"):
            (here.project / "tools" / hook).write_text("#!/bin/sh\ntouch PWNED\n")
            (here.project / "tools" / hook).chmod(0o755)
        repository(here.project)
        with (here.project / ".git/config").open("a") as file:
            file.write(FILTERS[name])
        if "work tree" in name:
            (here.project / ".git/config.worktree").write_text(FILTERS["clean"])
        (here.project / "b.txt").write_text("changed")
        done = cru("go", home=here)
    [result] = [str(entry["content"]) for entry in here.log() if entry["entry_type"] == "tool_result"]
    assert [path for path in tmp_path.rglob("PWNED")] == [], done
    assert ("run a program over its files" in result) is (name not in ("none", "Git LFS"))
    assert name != "none" or "worktree of its own" in result or "was not changed" in result, result


PROGRAMS = ("git", "rg", "bwrap", "bash", "sh")


PATHS = (".:{path}", ":{path}", "{path}:", "./bin:{path}", "{project}/bin:{path}")


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
def test_no_program_of_the_project_stands_in_for_one_that_cru_needs(tmp_path: Path, path: str) -> None:
    """A PATH with an empty or relative entry is a mistake that many people have in their settings; one with a folder of the project is
    that of its activated environment."""

    def plant(here: HomeDir) -> None:
        repository(here.project)
        for folder in (here.project, here.project / "bin"):
            folder.mkdir(exist_ok=True)
            for name in PROGRAMS:
                (folder / name).write_text("#!/bin/sh\necho >>PWNED\n")
                (folder / name).chmod(0o755)

    calls = [
        Call("write", {"file_path": "a.txt", "content": "crown"}),
        Call("grep", {"pattern": "crown"}),
        Call("bash", {"command": ":"}),
    ]
    env = {"PATH": path.format(path="/usr/local/bin:/usr/bin:/bin", project=tmp_path / "project")}
    played = play(tmp_path, calls, mode="trust", config='[sandbox]\nmode = "auto"\n', plant=plant, env=env)
    assert "a.txt:1:crown" in played.results[1]
    assert not [file for file in tmp_path.rglob("PWNED")]


# repositories within ---------------------------------------------------------------------------------------------------------------

IDENTITY = "-c user.name=a -c user.email=a@b"
WITHIN = (
    "git init -q sub && cd sub && echo a >a && git add a && git {identity} commit -qm 1 && git config core.fsmonitor {evil} && "
    "git config filter.evil.clean {evil} && echo '* filter=evil' >.git/info/attributes && touch -d 2020-01-01 a"
)
"""A repository in the project whose settings run a program as soon as git asks what has changed in it."""


def _with_repository_within(tmp_path: Path, url: str) -> tuple[HomeDir, Path, str]:
    here, target = home(tmp_path, url=url), tmp_path / "PWNED"
    evil = here.project / "evil.sh"
    evil.write_text(f"#!/bin/sh\necho ran >>{target}\ncat\n")
    evil.chmod(0o755)
    subprocess.run(
        f"git init -q . && echo x >f && git add f && git {IDENTITY} commit -qm 1",
        shell=True, cwd=here.project, check=True, capture_output=True,
    )  # fmt: skip
    return here, target, WITHIN.format(identity=IDENTITY, evil=evil)


@pytest.mark.slow
def test_what_cru_looks_at_around_commands_runs_nothing_of_a_repository_within(tmp_path: Path) -> None:
    commands = ["echo 2 >g", "echo 3 >g", "echo 4 >g"]
    steps = [*(Reply(calls=[Call("bash", {"command": command})]) for command in commands), Reply("done")]
    with server(steps * 2) as model:
        here, target, plant = _with_repository_within(tmp_path, model.url)
        subprocess.run(plant, shell=True, cwd=here.project, check=True)
        subprocess.run(
            f"git add sub; git {IDENTITY} commit -qm 2; git status --short",
            shell=True, cwd=here.project, check=True, capture_output=True,
        )  # fmt: skip
        assert target.exists()  # without cru the attack works
        target.unlink()
        runs = [cru("-t", "go", home=here) for _ in range(2)]
    assert [run.code for run in runs] == [0, 0] and not target.exists()
    changed = cru("history", home=here)
    assert changed.code == 0 and "g" in changed.out, changed


def test_a_worktree_asks_nothing_of_a_repository_within_and_stays_with_it(tmp_path: Path) -> None:
    def work(request: Received) -> Reply:
        last = request.body["messages"][-1]
        if last["role"] == "tool":
            return Reply("done")
        is_agent = "look" in str(last["content"])
        task = Call("task", {"description": "l", "prompt": "look", "agent": "general", "isolation": "worktree"})
        return Reply(calls=[Call("bash", {"command": plant}) if is_agent else task])

    with server(work) as model:
        here, target, plant = _with_repository_within(tmp_path, model.url)
        subprocess.run(
            f"{plant}; cd ..; git add sub; git {IDENTITY} commit -qm 2",
            shell=True, cwd=here.project, check=True, capture_output=True,
        )  # fmt: skip
        target.unlink(missing_ok=True)
        done = cru("-t", "go", home=here)
    assert done.code == 0 and not target.exists(), done
    [result] = [str(entry["content"]) for entry in here.log() if entry["entry_type"] == "tool_result"]
    assert "there is a repository in it" in result
