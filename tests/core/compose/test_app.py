"""The composition root: where things are found, and what a session is built of."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from tests.kit.closing import closed_later

from cru.core.base.config.layers import ConfigError
from cru.core.compose import Start, build, load_settings, project_root
from cru.core.guard.rules import PermissionSettings
from cru.core.models import ModelSettings
from cru.core.turn.parts import EngineSettings


def start_in(tmp_path: Path, env: dict[str, str] | None = None, **overrides: object) -> Start:
    root = tmp_path / "project"
    root.mkdir(exist_ok=True)
    return Start(tmp_path / "home", "work", {"HOME": str(tmp_path), **(env or {})}, root, root, dict(overrides))


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def root_of(cwd: Path, env: dict[str, str] | None = None, given: str | None = None) -> Path:
    nobody = {"HOME": "/nobody"}
    return project_root(cwd, {**nobody, **(env or {})}, Path("/nobody/.cru"), given)


@pytest.mark.parametrize("mark", [".git", ".hg", ".jj"])
def test_the_project_root_is_the_nearest_folder_under_version_control(tmp_path: Path, mark: str) -> None:
    inner = tmp_path / "a" / "b"
    (inner / ".cru").mkdir(parents=True)
    (tmp_path / mark).mkdir()
    assert root_of(inner) == tmp_path
    (tmp_path / "a" / ".git").write_text("gitdir: elsewhere")  # a worktree
    assert root_of(inner) == tmp_path / "a"


def test_without_version_control_the_project_root_is_the_nearest_folder_with_settings(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b" / "c"
    inner.mkdir(parents=True)
    (tmp_path / "a" / ".cru").mkdir()
    (tmp_path / "a" / "b" / ".cru").write_text("no folder")
    assert root_of(inner) == root_of(tmp_path / "a") == tmp_path / "a"
    (inner / ".cru").mkdir()
    assert root_of(inner) == inner


def test_the_users_own_homes_of_cru_and_what_lies_above_are_no_projects(tmp_path: Path) -> None:
    inner = tmp_path / "user" / "work" / "deep"
    inner.mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "user", tmp_path / "user" / "work"):
        (folder / ".cru").mkdir()
    env = {"HOME": str(tmp_path / "user")}
    assert project_root(inner, env, tmp_path / "user" / "work" / ".cru") == inner
    assert project_root(inner, env, tmp_path / "user" / ".cru") == tmp_path / "user" / "work"
    (tmp_path / "other").mkdir()
    assert project_root(tmp_path / "other", env, tmp_path / "user" / ".cru") == tmp_path / "other"


def test_a_linked_home_of_cru_is_no_project(tmp_path: Path) -> None:
    inner = tmp_path / "user" / "work"
    inner.mkdir(parents=True)
    (tmp_path / "kept").mkdir()
    (tmp_path / "user" / ".cru").symlink_to(tmp_path / "kept")
    assert project_root(inner, {"HOME": str(tmp_path / "elsewhere")}, tmp_path / "kept") == inner


def test_the_project_root_may_be_named_and_the_flag_wins(tmp_path: Path) -> None:
    env = {"CRU_PROJECT_ROOT": str(tmp_path / "of-env")}
    assert root_of(tmp_path, env) == tmp_path / "of-env"
    assert root_of(tmp_path, env, "of-flag") == tmp_path / "of-flag"
    assert root_of(tmp_path, {}, "~/x") == Path(os.path.realpath(os.path.expanduser("~/x")))


def test_with_no_mark_above_the_project_root_is_here_with_links_resolved(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert root_of(tmp_path / "link") == tmp_path / "real"


def test_layers_are_read_in_order_and_the_command_line_wins(tmp_path: Path) -> None:
    start = start_in(tmp_path, model="of-flag")
    write(start.home / "config.toml", 'model = "of-user"\nfuel = 1\nmode = "plan"\n')
    write(start.home / "contexts" / "work" / "local.toml", 'model = "of-context"\nfuel = 2\n')
    settings, layers, notices = load_settings(start)
    assert settings.of(ModelSettings).model == "of-flag"
    assert settings.of(EngineSettings).fuel == 2 and settings.of(PermissionSettings).mode == "plan"
    assert [layer.name for layer in layers][-1] == "command line" and notices == []


def test_an_untrusted_project_is_restricted_with_a_notice_for_each_line(tmp_path: Path) -> None:
    start = start_in(tmp_path)
    path = write(start.root / ".cru" / "config.toml", 'model = "x"\n[permissions]\ndeny = ["bash"]\n')
    settings, _, notices = load_settings(start)
    assert settings.of(ModelSettings).model == "" and settings.of(PermissionSettings).permissions.deny == ("bash",)
    assert len(notices) == 1 and f"{path}:1" in notices[0]


def test_the_users_own_home_as_a_project_needs_no_trust(tmp_path: Path) -> None:
    home = tmp_path / "user" / ".cru"
    write(home / "config.toml", 'model = "mine"\n')
    start = Start(home, "default", {}, home.parent, home.parent)
    settings, _, notices = load_settings(start)
    assert settings.of(ModelSettings).model == "mine" and notices == []


def test_facts_about_models_of_chibi_are_read_too(tmp_path: Path) -> None:
    start = start_in(tmp_path)
    write(start.home / "models.toml", '[models."vendor/m"]\ncontext_window = 1234\n')
    settings, _, _ = load_settings(start)
    assert settings.of(ModelSettings).models["vendor/m"].context_window == 1234


def test_tools_get_the_environment_without_keys_and_with_names_of_our_own(tmp_path: Path) -> None:
    start = start_in(tmp_path, {"OPENAI_API_KEY": "sk-1", "ANTHROPIC_API_KEY": "sk-2", "EDITOR": "vi"})
    env = closed_later(build(start)).session.parts.place.env
    assert env["EDITOR"] == "vi" and env["CRU_CONTEXT"] == "work" and env["CRU_PROJECT_ROOT"] == str(start.root)
    assert not any(name.endswith("API_KEY") for name in env)


def test_building_a_session_reads_and_sends_nothing_of_the_conversation(tmp_path: Path) -> None:
    start = start_in(tmp_path)
    built = closed_later(build(start))
    assert built.store.name == "work" and not (built.store.folder / "context.jsonl").exists()
    assert not (built.store.folder / ".lock").exists()


def test_problems_found_while_building_and_opening_are_told_to_whoever_watches(tmp_path: Path) -> None:
    start = start_in(tmp_path)
    write(start.home / "state.json", "{broken")
    write(start.home / "config.toml", '[permissions]\ndeny = ["bahs"]\n')
    heard: list[str] = []
    built = build(start, watch=lambda bus: bus.stream.subscribe(lambda item: heard.append(str(item.payload))))
    closed_later(built)
    assert any("state.json" in text for text in heard)
    asyncio.run(built.session.open())
    assert any("bahs" in text for text in heard)


@pytest.mark.parametrize("key", ["include", "exclude", "exclude_categories"])
def test_the_tools_table_of_chibi_stops_the_run_and_says_how_to_write_it(tmp_path: Path, key: str) -> None:
    start = start_in(tmp_path)
    write(start.home / "config.toml", f'[tools]\n{key} = ["bash"]\n')
    with pytest.raises(ConfigError, match=f"`tools.{key}` of chibi is not known here") as raised:
        load_settings(start)
    assert "[permissions] deny" in raised.value.hint
