"""Sub-agents in a git worktree of their own: nothing of the project changes, and nothing of their work is lost."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.core.agents.support import ClosedWorld, call, records, script
from tests.core.turn.support import Person, World
from tests.kit import HomeDir, cru, home
from tests.kit.waiting import wait_until

from cru.core.agents import TaskError
from cru.core.agents.worktree import Worktree, _put_index
from cru.core.guard.rules.gate import PermissionReply

DONE = "---\ntext: all is done\n"


def world_with(tmp_path: Path, calls: str, **more: object) -> World:
    return ClosedWorld(tmp_path, f"{calls}\n{DONE}", **more)


def git_project(tmp_path: Path) -> Path:
    """A project under version control, with one file."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("one\n")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], cwd=project, check=True)
    return project


def test_an_agent_in_a_worktree_changes_nothing_of_the_project(tmp_path: Path) -> None:
    project = git_project(tmp_path)
    calls = [{"file_path": "a.txt", "content": "two\n"}, {"file_path": "new", "content": "n\n"}]
    text = "".join(f"call: write {json.dumps(arguments)}\n" for arguments in calls)
    child = script(tmp_path, "child", f"{text}---\ntext: changed\n")
    world = world_with(tmp_path, call("general", child, isolation="worktree"), settings={"mode": "auto"})
    world.run("go")
    assert (project / "a.txt").read_text() == "one\n" and not (project / "new").exists()
    text = world.results()[0]
    assert text.startswith("changed\n\n[it worked in a git worktree") and "+two" in text and "+n" in text
    patch = tmp_path / "home" / "contexts" / "main" / "tasks" / records(world)[0].id / "changes.patch"
    subprocess.run(["git", "apply", str(patch)], cwd=project, check=True)
    assert (project / "a.txt").read_text() == "two\n" and (project / "new").read_text() == "n\n"
    listed = subprocess.run(["git", "worktree", "list"], cwd=project, check=True, capture_output=True, text=True).stdout
    assert listed.count("\n") == 1


def test_changes_in_a_worktree_are_a_patch_however_a_person_looks_at_diffs(tmp_path: Path) -> None:
    project = git_project(tmp_path)
    (tmp_path / ".gitconfig").write_text(
        "[diff]\n external = true\n noprefix = true\n[color]\n diff = always\n[core]\n pager = false\n"
    )
    child = script(tmp_path, "child", 'call: write {"file_path": "a.txt", "content": "two\\n"}\n---\ntext: changed\n')
    world = world_with(tmp_path, call("general", child, isolation="worktree"), settings={"mode": "auto"})
    index = project / ".git" / "index"
    before = index.read_bytes()
    world.session.parts.place.env = {
        **world.session.parts.place.env,
        "GIT_INDEX_FILE": str(index),
    }  # as a hook of git's has it
    world.run("go")
    assert index.read_bytes() == before
    patch = tmp_path / "home" / "contexts" / "main" / "tasks" / records(world)[0].id / "changes.patch"
    subprocess.run(["git", "apply", str(patch)], cwd=project, check=True)
    assert (project / "a.txt").read_text() == "two\n"


def test_a_worktree_with_a_repository_in_it_stays(tmp_path: Path) -> None:
    git_project(tmp_path)
    make = "git init -q in && cd in && echo x > y && git add y && git -c user.name=x -c user.email=x@y commit -qm x"
    child = script(tmp_path, "child", f"call: bash {json.dumps({'command': make})}\n---\ntext: made\n")
    world = world_with(tmp_path, call("general", child, isolation="worktree"), settings={"mode": "trust"})
    world.run("go")
    kept = re.search(r"which is still at (\S+):", world.results()[0])
    assert kept and (Path(kept[1]) / "in" / "y").read_text() == "x\n"
    shutil.rmtree(Path(kept[1]).parent)


def test_what_an_agent_changed_that_was_ended_is_told(tmp_path: Path) -> None:
    git_project(tmp_path)
    child = script(tmp_path, "child", 'call: write {"file_path": "a.txt", "content": "two"}\n---\ndelay: 600s\n')
    world = world_with(
        tmp_path, call("general", child, isolation="worktree", background=True), settings={"mode": "auto"}
    )

    async def ended() -> None:
        world.session.submit("go")
        await world.session.run()
        log = world.built.store.folder / "tasks" / records(world)[0].id / "context.jsonl"
        await asyncio.to_thread(wait_until, lambda: log.exists() and b"tool_result" in log.read_bytes())
        await world.session.close()

    asyncio.run(ended())
    (told,) = [text for text in world.notices() if "changes.patch" in text]
    assert told.startswith(f"sub-agent general (task {records(world)[0].id}): ") and "+two" in told


def test_no_rule_is_kept_for_a_question_in_a_worktree(tmp_path: Path) -> None:
    git_project(tmp_path)
    person = Person(PermissionReply("once"))
    child = script(tmp_path, "child", 'call: write {"file_path": "a.txt", "content": "two"}\n---\ntext: done\n')
    world_with(tmp_path, call("general", child, isolation="worktree"), asker=person).run("go")
    assert [question.rule for question in person.questions] == [""]


def inner_project(tmp_path: Path, rules: str) -> HomeDir:
    """A home whose project is the folder `pkg` of a repository; an agent in a worktree tries what `rules` forbid."""
    here = home(tmp_path)
    here.project.rmdir()
    top = git_project(tmp_path)
    for name in ("pkg/secret.txt", "pkg/keys/k.pem", "pkg/free.txt", "other/o.txt", "private/p.txt"):
        (top / name).parent.mkdir(exist_ok=True)
        (top / name).write_text(f"what {name} says\n")
    for words in (["add", "."], ["-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", "y"]):
        subprocess.run(["git", *words], cwd=top, check=True)
    here.project = top / "pkg"
    child = script(tmp_path, "child", f"{TRIES}---\ntext: tried\n")
    main = script(tmp_path, "main", call("general", child, isolation="worktree") + "\n" + DONE)
    here.configure(f'model = "{main}"\nmode = "trust"\n[permissions]\n{rules}\n')
    return here


TRIES = "".join(
    f"call: {name} {json.dumps(arguments)}\n"
    for name, arguments in (
        ("read", {"file_path": "secret.txt"}), ("read", {"file_path": "keys/k.pem"}), ("read", {"file_path": "../private/p.txt"}),
        ("write", {"file_path": "../other/new.txt", "content": "x\n"}), ("bash", {"command": "pwd"}),
        ("write", {"file_path": "free.txt", "content": "changed\n"}),
    )
)  # fmt: skip


def test_an_agent_in_a_worktree_works_in_the_copy_of_a_project_below_the_top_of_its_repository(tmp_path: Path) -> None:
    rules = 'deny = ["read:./secret.txt", "read:keys/*.pem", "write:../other/**", "read:{}/private/**"]'
    here = inner_project(tmp_path, rules.format(tmp_path / "project"))
    ended = cru("--project-root", ".", "go", home=here)
    assert ended.code == 0, ended.err
    (folder,) = (file.parent for file in here.context().glob("tasks/*/task.json"))
    entries = [json.loads(line) for line in (folder / "context.jsonl").read_text().splitlines()]
    results = [entry["content"] for entry in entries if entry.get("entry_type") == "tool_result"]
    assert [("Not allowed by policy" in text) for text in results] == [True] * 4 + [False] * 2, results
    assert re.search(r"/cru-worktree-\w+-\w+/pkg/pkg\Z", results[4])
    top, patch = here.project.parent, folder / "changes.patch"
    (report,) = [entry["content"] for entry in here.log() if entry.get("entry_type") == "tool_result"]
    assert f"`git -C {top} apply {patch}`" in report and "other/new" not in report
    assert (
        f"{patch} (`git apply` at the top of the repository takes" in cru("tasks", "show", folder.name, home=here).out
    )
    subprocess.run(["git", "-C", str(top), "apply", str(patch)], check=True)
    assert (here.project / "free.txt").read_text() == "changed\n"


def test_a_project_that_the_last_commit_has_not_has_no_worktree(tmp_path: Path) -> None:
    here = inner_project(tmp_path, "deny = []")
    here.project = here.project.parent / "new"
    here.project.mkdir()
    assert cru("--project-root", ".", "go", home=here).code == 0
    (report,) = [entry["content"] for entry in here.log() if entry.get("entry_type") == "tool_result"]
    assert "isolation `worktree`" in report and "new" in report


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


async def _worked(project: Path, tmp_path: Path, work: Callable[[Path], object]) -> str:
    """What an agent in a worktree would leave as a patch."""
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    tree = await Worktree.add(project, tmp_path / "task", env, lambda record: None)
    work(tree.path)
    await tree.finish()
    assert not tree.path.parent.exists() and not (tmp_path / "task" / "git").exists()
    assert not (project / ".git" / "worktrees").exists()
    return (tmp_path / "task" / "changes.patch").read_text()


def test_a_sparse_checkout_stays_sparse(tmp_path: Path) -> None:
    project = git_project(tmp_path)
    for name in ("in", "out"):
        (project / name).mkdir()
        (project / name / "f").write_text(f"{name}\n")
    _git(project, "add", ".")
    _git(project, "commit", "-qm", "folders")
    _git(project, "sparse-checkout", "set", "in")
    seen: list[bool] = []

    def work(path: Path) -> None:
        seen.extend([(path / "in" / "f").exists(), (path / "out").exists(), _git(path, "status", "--porcelain") == ""])
        (path / "in" / "f").write_text("changed\n")

    patch = asyncio.run(_worked(project, tmp_path, work))
    assert seen == [True, False, True]
    assert "+changed" in patch and "out/f" not in patch


def test_a_split_index_is_whole_for_the_agent(tmp_path: Path) -> None:
    project = git_project(tmp_path)
    _git(project, "config", "core.splitIndex", "true")
    statuses: list[str] = []

    def work(path: Path) -> None:
        statuses.append(_git(path, "status", "--porcelain"))
        (path / "a.txt").write_text("two\n")

    assert "+two" in asyncio.run(_worked(project, tmp_path, work)) and statuses == [""]


def test_a_checkout_that_fails_leaves_nothing(tmp_path: Path) -> None:
    project = git_project(tmp_path)
    (tmp_path / ".gitconfig").write_text('[filter "zz"]\n\tsmudge = false\n\trequired = true\n')
    (project / ".gitattributes").write_text("*.txt filter=zz\n")
    _git(project, "add", ".gitattributes")
    _git(project, "commit", "-qm", "attributes")
    with pytest.raises(TaskError):
        asyncio.run(_worked(project, tmp_path, lambda path: None))
    assert not (project / ".git" / "worktrees").exists() and not (tmp_path / "task" / "git").exists()


def test_there_is_no_worktree_in_a_worktree(tmp_path: Path) -> None:
    project = git_project(tmp_path)
    inner = project.rename(tmp_path / "cru-worktree-1-2")
    with pytest.raises(TaskError, match="starts none in a worktree of their own"):
        asyncio.run(_worked(inner, tmp_path, lambda path: None))


def test_a_worktree_is_never_made_in_its_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = git_project(tmp_path)
    (project / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(project / "tmp"))
    places: list[Path] = []

    def work(path: Path) -> None:
        places.append(path)
        (path / "n").write_text("n\n")

    asyncio.run(_worked(project, tmp_path, work))
    assert not places[0].is_relative_to(project)


@pytest.mark.parametrize("place", ["index", "its folder", "the folder of all"])
def test_an_index_is_put_nowhere_else(tmp_path: Path, place: str) -> None:
    common, victim = tmp_path / "common", tmp_path / "victim"
    (common / "worktrees" / "p").mkdir(parents=True)
    victim.mkdir()
    (victim / "index").write_text("precious")
    if place == "index":
        (common / "worktrees" / "p" / "index").symlink_to(victim / "index")
        _put_index(b"DIRC", str(common), "p")
        assert (common / "worktrees" / "p" / "index").read_bytes() == b"DIRC"
    else:
        link = common / "worktrees" / ("p" if place == "its folder" else "")
        shutil.rmtree(link)
        link.symlink_to(victim if place == "its folder" else tmp_path)
        (tmp_path / "p").symlink_to(victim)
        with pytest.raises((NotADirectoryError, OSError)):
            _put_index(b"DIRC", str(common), "p")
    assert (victim / "index").read_text() == "precious" and len(list(victim.iterdir())) == 1
