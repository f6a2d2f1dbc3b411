"""Rules of Claude Code's settings while a session runs: they hold on, or it is told that they are gone."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.core.turn.support import World
from tests.kit.closing import close_later

from cru.core.compose import Start
from cru.core.hooks.errors import Untrusted

SCRIPT = 'call: bash {"command": "touch RAN"}\n---\ntext: ok\n'
RULES = '{"permissions": {"deny": ["Bash"]}}'


def replace_by_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def link_to_nowhere(file: Path) -> None:
    file.unlink()
    file.symlink_to("nowhere")


BROKEN: dict[str, Callable[[Path], object]] = {
    "no JSON": lambda file: file.write_text("xx"),
    "half written": lambda file: file.write_text('{"permissions": {"deny"'),
    "empty": lambda file: file.write_text(""),
    "wrong type": lambda file: file.write_text('{"permissions": 5}'),
    "dangling": link_to_nowhere,
    "folder": replace_by_folder,
}
GONE: dict[str, Callable[[Path], object]] = {
    "removed": lambda file: file.unlink(),
    "moved": lambda file: shutil.move(file.parent, file.parent.with_name("claudex")),
    "taken out": lambda file: file.write_text("{}"),
}


def world(tmp_path: Path, layer: str) -> tuple[World, Path]:
    file = tmp_path / layer / ".claude" / "settings.json"
    file.parent.mkdir(parents=True)
    file.write_text(RULES)
    session = World(tmp_path, f"{SCRIPT}---\n{SCRIPT}---\n{SCRIPT}", settings={"mode": "trust"})
    close_later(session.session.close)
    return session, file


def has_run(tmp_path: Path) -> bool:
    return (tmp_path / "project" / "RAN").exists()


@pytest.mark.parametrize("layer", ["", "project"], ids=["user", "project"])
@pytest.mark.parametrize("what", BROKEN)
def test_rules_of_a_file_that_cannot_be_used_any_more_stay(tmp_path: Path, layer: str, what: str) -> None:
    session, file = world(tmp_path, layer)
    session.run("go")
    BROKEN[what](file)
    session.run("go on")
    assert not has_run(tmp_path)
    assert any(f"{file}: its rules stay as before" in text for text in session.notices())
    if file.is_dir():
        file.rmdir()
    file.unlink(missing_ok=True)
    file.write_text("{}")
    session.run("and now")
    assert has_run(tmp_path) and f"{file}: deny bash: this rule is gone" in session.notices()


@pytest.mark.parametrize("layer", ["", "project"], ids=["user", "project"])
@pytest.mark.parametrize("what", GONE)
def test_rules_that_are_gone_are_told(tmp_path: Path, layer: str, what: str) -> None:
    session, file = world(tmp_path, layer)
    session.run("go")
    assert not has_run(tmp_path)
    GONE[what](file)
    session.run("go on")
    assert has_run(tmp_path) and f"{file}: deny bash: this rule is gone" in session.notices()


def test_with_strict_nothing_is_asked_until_they_are_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.core.turn.support.Start", partial(Start, strict_hooks=True))
    session, file = world(tmp_path, "project")
    session.run("go")
    for change in (*BROKEN.values(), *GONE.values()):
        change(file)
        with pytest.raises(Untrusted):
            session.run("go on")
        assert len(session.results()) == 1
        if file.is_dir():
            file.rmdir()
        file.unlink(missing_ok=True)
        file.parent.mkdir(exist_ok=True)
        file.write_text(RULES)
    session.run("and now")
    assert not has_run(tmp_path) and len(session.results()) > 1
