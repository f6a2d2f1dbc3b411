"""Themes of the chat: built-in ones, files, `/theme`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.kit import HomeDir, Reply, pty, server

from cru.faces.cli.chat.themes import BUILT_IN, STYLES, ThemeError, Themes


def with_file(home: Path, text: str) -> Themes:
    (home / "themes").mkdir(exist_ok=True)
    (home / "themes" / "mine.toml").write_text(text)
    return Themes(home)


def test_a_file_changes_styles_of_its_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    themes = with_file(
        tmp_path, 'base = "light"\nadded = "bold bright-green"\nmark = "#0a0B0c underline"\nremoved = ""\n'
    )
    assert themes.change("") == "* dark\n  light\n  plain\n  mine"
    assert themes.change("mine") == 'this chat has the theme mine; to keep it: theme = "mine" in config.toml'
    assert [themes.escape(name) for name in ("added", "mark", "removed", "place")] == [
        "1;92",
        "38;2;10;11;12;4",
        "",
        "34",
    ]
    assert themes.screen_style().get_attrs_for_style_str("class:mark").color == "0a0B0c"
    monkeypatch.setenv("NO_COLOR", "1")
    assert {themes.escape(name) for name in STYLES} == {""}


@pytest.mark.parametrize(
    ("text", "place", "sentence"),
    [
        ('base = "dark"\nadd = "red"\n', ":2: ", "there is no style `add`"),
        ('added = "pink"\n', ":1: ", "`pink` is no colour"),
        ('added = "#12345"\n', ":1: ", "`#12345` is no colour"),
        ("\nadded = 3\n", ":2: ", "`added` is no text"),
        ('base = ["dark"]\n', ":1: ", "`base` is one of dark, light, plain"),
        ("added = \n", ": ", "line 1"),
    ],
)
def test_a_file_with_errors_is_told_with_its_line(tmp_path: Path, text: str, place: str, sentence: str) -> None:
    themes = with_file(tmp_path, text)
    with pytest.raises(ThemeError) as raised:
        themes.use("mine")
    assert f"mine.toml{place}" in raised.value.message and sentence in raised.value.message
    assert themes.name == "dark"


@pytest.mark.parametrize("name", ["../config", "ligth", "none", ""])
def test_what_is_no_theme_is_told(tmp_path: Path, name: str) -> None:
    with pytest.raises(ThemeError, match="there is no theme"):
        Themes(tmp_path).use(name)


def test_every_built_in_theme_has_every_style() -> None:
    assert all(styles.keys() == STYLES.keys() for styles in BUILT_IN.values())


def test_a_chat_with_a_broken_theme_goes_on_and_changes_it(home: HomeDir) -> None:
    with server([Reply("answer")]) as model:
        home.configure('theme = "mine"\n', url=model.url)
        with_file(home.cru, 'added = "pink"\n')
        with pty(home=home, env={"TERM": "xterm"}) as terminal:
            terminal.expect("mine.toml:1: `pink` is no colour")
            terminal.line("/theme light")
            terminal.expect("this chat has the theme light")
            terminal.line("hello")
            terminal.expect("answer")
            assert terminal.eof() == 0
