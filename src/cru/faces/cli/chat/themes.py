"""Themes of the chat: names of styles, what is drawn in each, and files that change that.

A style is words: `bold`, `dim`, `italic`, `underline`, a colour of the terminal (`red`, `bright-red`) or `#rrggbb`. $NO_COLOR wins.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from prompt_toolkit.styles import BaseStyle, DynamicStyle, Style

from cru.core.base.config.closest import did_you_mean
from cru.core.base.config.layers import Settings
from cru.core.base.config.positions import line_of
from cru.core.base.files import parse_toml
from cru.core.base.files.nesting import BadToml
from cru.core.base.files.regular import read_regular
from cru.core.commands.errors import CommandError
from cru.core.compose.chat_settings import ThemeTable
from cru.faces.cli.console import complain

STYLES = {
    "activity": "what runs, and for how long", "output": "the last lines of what runs", "queue": "prompts that wait", "todos": "todos",
    "status": "the status line", "mark": "the mark before the line", "added": "added lines", "removed": "removed lines",
    "place": "where in a file a change is", "dim": "what is less important: output of commands, names of files",
}  # fmt: skip
_DARK = {
    "activity": "bright-black", "output": "bright-black", "queue": "cyan", "todos": "cyan", "status": "bright-black", "mark": "bold cyan",
    "added": "green", "removed": "red", "place": "cyan", "dim": "dim",
}  # fmt: skip
_LIGHT = {
    **_DARK,
    "queue": "blue",
    "todos": "blue",
    "mark": "bold blue",
    "added": "#006600",
    "removed": "#aa0000",
    "place": "blue",
}
BUILT_IN: dict[str, Mapping[str, str]] = {"dark": _DARK, "light": _LIGHT, "plain": dict.fromkeys(STYLES, "")}
COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
ANSI = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "gray")
BRIGHT = (
    "brightblack",
    "brightred",
    "brightgreen",
    "brightyellow",
    "brightblue",
    "brightmagenta",
    "brightcyan",
    "white",
)
ATTRIBUTES = {"bold": "1", "dim": "2", "italic": "3", "underline": "4"}
HEX = re.compile("#[0-9a-f]{6}", re.IGNORECASE)
NAME = re.compile(r"\w[\w.-]*")


class ThemeError(CommandError):
    """A theme that cannot be used: a sentence, with file and line."""


class Themes:
    """Those of a home, and the one in use."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "themes"
        self.name = "dark"
        self._styles = _DARK
        self._drawn = _style_of(_DARK)

    def names(self) -> list[str]:
        """All, the built-in ones first."""
        files = sorted(path.stem for path in self._folder.glob("*.toml")) if self._folder.is_dir() else []
        return [*BUILT_IN, *(name for name in files if name not in BUILT_IN)]

    def use(self, name: str) -> None:
        """Raises ThemeError; the theme in use then stays."""
        styles = BUILT_IN[name] if name in BUILT_IN else self._read(name)
        self.name, self._styles, self._drawn = name, dict(styles), _style_of(styles)

    def screen_style(self) -> BaseStyle:
        """What the screen draws with, always that of the theme in use."""
        return DynamicStyle(lambda: self._drawn)

    def escape(self, name: str) -> str:
        """The parameters of the escape sequence for a style, "" if it is drawn as everything else."""
        return "" if os.environ.get("NO_COLOR") else ";".join(map(_parameter, self._styles[name].split()))

    def change(self, words: str) -> str:
        """What `/theme` says: all names, or that another one is in use. Raises ThemeError."""
        if not words:
            return "\n".join(f"{'*' if name == self.name else ' '} {name}" for name in self.names())
        self.use(words)
        return f'this chat has the theme {words}; to keep it: theme = "{words}" in config.toml'

    def _read(self, name: str) -> Mapping[str, str]:
        path = self._folder / f"{name}.toml"
        if not NAME.fullmatch(name) or not path.is_file():
            known = self.names()
            raise ThemeError(
                f"there is no theme `{name}`", did_you_mean(name, known) or f"there are: {', '.join(known)}"
            )
        try:
            text = read_regular(path).decode()
            data = parse_toml(text)
        except (OSError, UnicodeDecodeError, BadToml) as error:
            raise ThemeError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
        problem = next(_problems(data), None)
        if problem is not None:
            key, sentence = problem
            line = line_of(text, (key,))
            raise ThemeError(f"{path}:{line}: {sentence}" if line else f"{path}: {sentence}")
        return {**BUILT_IN[data.get("base", "dark")], **{key: value for key, value in data.items() if key != "base"}}


def _problems(data: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """(key, sentence)"""
    for key, value in data.items():
        if key == "base":
            if not isinstance(value, str) or value not in BUILT_IN:
                yield key, f"`base` is one of {', '.join(BUILT_IN)}"
        elif key not in STYLES:
            hint = did_you_mean(key, tuple(STYLES)) or f"there are: {', '.join(STYLES)}"
            yield key, f"there is no style `{key}` ({hint})"
        elif not isinstance(value, str):
            yield key, f"`{key}` is no text"
        elif wrong := [word for word in value.split() if not _is_known(word)]:
            yield (
                key,
                f"`{wrong[0]}` is no colour; there are #rrggbb, {', '.join((*COLOURS, *ATTRIBUTES))} and bright-COLOUR",
            )


def _is_known(word: str) -> bool:
    return word in ATTRIBUTES or word.removeprefix("bright-") in COLOURS or HEX.fullmatch(word) is not None


def _parameter(word: str) -> str:
    """Of one word of a style, for the escape sequence."""
    if word in ATTRIBUTES:
        return ATTRIBUTES[word]
    if word.startswith("#"):
        return ";".join(("38", "2", *(str(int(word[at : at + 2], 16)) for at in (1, 3, 5))))
    return str((90 if word.startswith("bright-") else 30) + COLOURS.index(word.removeprefix("bright-")))


def _style_of(styles: Mapping[str, str]) -> Style:
    names = {"activity": "live.activity", "output": "live.output", "queue": "live.queue", "todos": "live.todos"}
    shown = ("activity", "output", "queue", "todos", "status", "mark")
    return Style.from_dict({names.get(key, key): " ".join(map(_word, styles[key].split())) for key in shown})


def _word(word: str) -> str:
    """Of one word of a style, for the screen."""
    if word in ATTRIBUTES:
        return word
    if word.startswith("#"):
        return f"fg:{word}"
    table = BRIGHT if word.startswith("bright-") else ANSI
    return f"fg:ansi{table[COLOURS.index(word.removeprefix('bright-'))]}"


def open_themes(home: Path, settings: Settings) -> Themes:
    """With the theme of the settings; one that cannot be used is told."""
    themes = Themes(home)
    if settings.has(ThemeTable):
        try:
            themes.use(settings.of(ThemeTable).theme)
        except ThemeError as error:
            complain(error.message, error.hint)
    return themes
