"""Each project has a current context of its own (docs/decisions/conversations.md)."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.kit import Done, HomeDir, Reply, cru, server


def project(home: HomeDir, name: str, mark: str = ".git") -> Path:
    root = home.path / name
    (root / mark).mkdir(parents=True)
    return root


def listed(home: HomeDir, root: Path) -> list[str]:
    return cru("-L", home=home, cwd=root).out.splitlines()


def records(home: HomeDir) -> dict[str, Any]:
    session = msgspec.json.decode((home.cru / "session.json").read_bytes())
    return {root: record["current"] for root, record in session.get("projects", {}).items()}


def ask(home: HomeDir, root: Path, *words: str) -> Done:
    with server([Reply("fine")]) as model:
        home.configure(url=model.url)
        return cru(*words, home=home, cwd=root)


def test_each_project_has_its_own_conversation_named_after_its_folder(home: HomeDir) -> None:
    first, second = project(home, "one/app"), project(home, "two/app", ".cru")
    inner = first / "src"
    inner.mkdir()
    assert "conversation of its own" not in ask(home, inner, "hello").err
    assert ask(home, second, "hello").code == 0
    assert ask(home, home.project, "hello").code == 0
    assert listed(home, first) == ["* app", "  app-2", "  default"]
    assert listed(home, second) == ["  app", "* app-2", "  default"]
    assert listed(home, home.project) == ["  app", "  app-2", "* default"]
    link = home.path / "link"
    link.symlink_to(first)
    assert listed(home, link)[0] == "* app"
    worktree = home.path / "tree"
    worktree.mkdir()
    (worktree / ".git").write_text("gitdir: elsewhere\n")
    assert ask(home, worktree, "hello").code == 0 and listed(home, worktree)[-1] == "* tree"


@pytest.mark.slow
def test_switching_renaming_and_deleting_act_on_the_projects_own_current_context(home: HomeDir) -> None:
    root, other = project(home, "app"), project(home, "other")
    for place in (root, other, home.project):
        assert ask(home, place, "hello").code == 0
    assert ask(home, root, "-c", "plan", "hello").code == 0
    assert ask(home, other, "-c", "plan", "hello").err == "cru: plan began in another project, " + f"{root}\n"
    assert records(home) == {str(root): "plan", str(other): "plan"}
    assert cru("-R", "plan", "idea", home=home, cwd=home.project).code == 0
    assert records(home) == {str(root): "idea", str(other): "idea"}
    assert cru("-x", "-c", "-", home=home, cwd=root).code == 0
    assert records(home) == {str(root): "app", str(other): "idea"}
    assert cru("-D", "app", home=home, cwd=home.project).code == 0
    assert cru("-D", "idea", home=home, cwd=home.project).code == 0
    assert records(home) == {str(other): "other"}, "where there is no previous one, a new one is made when it is needed"
    assert listed(home, home.project) == ["* default", "  other"]
    assert ask(home, root, "hello").code == 0 and records(home)[str(root)] == "app"


def test_looking_claims_no_name(home: HomeDir) -> None:
    root = project(home, "app")
    assert cru("-L", home=home, cwd=root).out == "* app\n"
    assert not home.cru.exists()


@pytest.mark.parametrize(
    ("folder", "name"),
    [("new", "new-2"), ("default", "default-2"), ("system", "project-system"), ("Ünï côde", "n-c-de"), ("...", "project"),
     ("x" * 100, "x" * 60)],
)  # fmt: skip
def test_a_name_is_made_of_any_folder(home: HomeDir, folder: str, name: str) -> None:
    root = project(home, f"in/{folder}")
    assert cru("-L", home=home, cwd=root).out == f"* {name}\n"


def test_what_was_there_before_is_named_and_not_taken_over(home: HomeDir) -> None:
    root = project(home, "app")
    for name in ("default", "app"):
        assert ask(home, home.project, "-c", name, "before").code == 0
    assert cru("-x", "-c", "default", home=home).code == 0
    done = ask(home, root, "hello")
    assert done.err == (
        "cru: this project has a conversation of its own from now on: app-2; `cru -c default` goes on with the one outside of projects; "
        "`cru -c app` goes on with an older one of that name\n"
    )
    assert [entry["content"] for entry in home.log("app-2")][:1] == ["hello"]
    assert ask(home, root, "again").err == ""
    moved = root.rename(home.path / "moved")
    assert f"`cru -c app-2` goes on with that of {root}, which is no more" in ask(home, moved, "hello").err


@pytest.mark.parametrize("words", [("-s", "contexts.scope=global"), ()])
def test_one_current_context_for_all(home: HomeDir, words: tuple[str, ...]) -> None:
    root = project(home, "app")
    home.configure("" if words else '[contexts]\nscope = "global"\n')
    assert cru(*words, "-L", home=home, cwd=root).out == "* default\n"
    assert cru("-s", "contexts.scope=project", "-L", home=home, cwd=root).out == "* app\n"


def test_a_home_of_chibi_keeps_its_way(home: HomeDir) -> None:
    root, chibi = project(home, "app"), home.path / ".chibi"
    assert cru("--home", str(chibi), "-L", home=home, cwd=root).out == "* default\n"
    home.cru.mkdir()
    (home.cru / "state.json").write_text('{"contexts": [{"name": "theirs", "created_at": 1}]}')
    assert cru("-L", home=home, cwd=root).out == "  theirs\n"


def test_a_scope_that_is_none_is_an_error(home: HomeDir) -> None:
    root = project(home, "app", ".cru")
    home.configure('[contexts]\nscope = "folder"\n')
    done = cru("-L", home=home, cwd=root)
    assert done.code == 1 and "config.toml:2" in done.err and "scope" in done.err
    home.configure("")
    (root / ".cru" / "config.toml").write_text('[contexts]\nscope = "global"\n')
    assert cru("-L", home=home, cwd=root).out == "* app\n", "a project does not choose that"


def test_projects_of_one_name_that_begin_at_once(home: HomeDir) -> None:
    roots = [project(home, f"{number}/app") for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda root: cru("-P", "ls", "{}", home=home, cwd=root), roots))
    assert [run.code for run in done] == [0] * 4
    assert sorted(records(home).values()) == ["app", "app-2", "app-3", "app-4"]


@pytest.mark.parametrize(
    "broken", ['{"projects": 3}', '{"projects": {"ROOT": {"current": "../x"}}}', '{"projects": {"ROOT": 1}}', "{"]
)
def test_broken_records_are_as_none(home: HomeDir, broken: str) -> None:
    root = project(home, "app")
    home.cru.mkdir()
    (home.cru / "session.json").write_text(broken.replace("ROOT", str(root)))
    assert ask(home, root, "hello").code == 0
    assert records(home) == {str(root): "app"}


def test_a_run_below_a_run_is_where_that_one_is(home: HomeDir) -> None:
    """A tool's environment names the folder that is worked in, which makes no project of it."""
    assert cru("-P", "bash", '{"command": "cru -L"}', home=home).out.split() == ["*", "default", "[active]"]
    root = project(home, "app")
    assert cru("-P", "bash", '{"command": "cd /; cru -L"}', home=home, cwd=root).out.split()[:2] == ["*", "app"]


@pytest.mark.slow
def test_what_a_run_would_do_is_told_of_the_projects_own_context(home: HomeDir) -> None:
    root = project(home, "app")
    assert ask(home, root, "hello").code == 0
    (home.context("app") / "local.toml").write_text('mode = "auto"\n[permissions]\nallow = ["bash:frob *"]\n')
    assert cru("permissions", "test", "bash", "frob x", home=home, cwd=root).code == 0
    assert cru("permissions", "test", "bash", "frob x", home=home).code == 6
    assert cru("permissions", home=home, cwd=root).out.startswith("mode auto")
    (home.context("app") / "local.toml").write_text("mode = 7\n")
    assert "local.toml" in cru("doctor", home=home, cwd=root).out
    assert "local.toml" not in cru("doctor", home=home).out


def test_a_project_whose_path_is_no_text_is_told_and_not_worked_in(home: HomeDir) -> None:
    root = os.fsencode(home.path) + b"/caf\xe9"
    os.makedirs(root + b"/.git")
    folder = Path(os.fsdecode(root))
    run = ask(home, folder, "hello")
    assert (
        run.code == 2 and "is not UTF-8\n  rename that folder" in run.err and not (home.cru / "session.json").exists()
    )
    assert cru("-L", home=home, cwd=folder).code == 0
