"""One key changed in a file, and the file replaced whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from cru.core.base.config.edit import set_value
from cru.core.base.config.layers import ConfigError

TEXT = """\
# who I am
username = "old"  # keep me

[api]
temperature = 1.0
"""


def test_comments_order_and_other_keys_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "local.toml"
    path.write_text(TEXT)
    set_value(path, "username", "new")
    assert path.read_text() == TEXT.replace('"old"', '"new"')


def test_a_missing_file_and_missing_tables_are_made_private(tmp_path: Path) -> None:
    path = tmp_path / "contexts" / "x" / "local.toml"
    set_value(path, "username", 'a "b"')
    set_value(path, "api.reasoning.effort", "low")
    set_value(path, 'models."a.b".context_window', 5)
    import tomllib

    assert tomllib.loads(path.read_text()) == {
        "username": 'a "b"',
        "api": {"reasoning": {"effort": "low"}},
        "models": {"a.b": {"context_window": 5}},
    }
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["local.toml"]


def test_none_removes_a_key(tmp_path: Path) -> None:
    path = tmp_path / "local.toml"
    path.write_text(TEXT)
    set_value(path, "api.temperature", None)
    set_value(path, "models.x.model", None)
    assert path.read_text() == TEXT.replace("temperature = 1.0\n", "")


def test_a_broken_file_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "local.toml"
    path.write_text("username = \n")
    with pytest.raises(ConfigError, match="not TOML"):
        set_value(path, "username", "x")
    assert path.read_text() == "username = \n"


def test_a_key_below_a_value_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "local.toml"
    path.write_text(TEXT)
    with pytest.raises(ConfigError, match="`username` is not a table"):
        set_value(path, "username.first", "x")


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be"):
        set_value(tmp_path / "file" / "local.toml", "username", "x")


def test_a_symlink_stays_and_its_target_keeps_its_mode(tmp_path: Path) -> None:
    target, link = tmp_path / "dotfiles.toml", tmp_path / "config.toml"
    target.write_text(TEXT)
    target.chmod(0o640)
    link.symlink_to(target)
    set_value(link, "username", "new")
    assert link.is_symlink()
    assert '"new"' in target.read_text()
    assert target.stat().st_mode & 0o777 == 0o640
