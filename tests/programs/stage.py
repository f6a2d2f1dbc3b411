"""A theme is a folder here: `plugin.lua`, `plugin.py` or both, and `play.py` with `play(stage)`: runs it and says what must come out."""

from __future__ import annotations

import re
import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

from msgspec import Struct, json
from tests.kit import Done, HomeDir, Received, Script, Terminal, cru, home, pty, server
from tests.programs.recording import ASSIGN, READ

from cru.core.api.names import CONSTANTS, INDEXED, NAMES

HERE = Path(__file__).parent
LAUNCHER = HERE / "cru_recording.py"
DOTTED = re.compile(r"\bcru\.([a-z_]+(?:\.[a-z_]+)*)")
IMPORTED = re.compile(r"^from cru(?:\.namespace\.python)? import (?:\(([^)]+)\)|(.+)$)", re.MULTILINE)
KEYED = re.compile(rf"\bcru\.({'|'.join(INDEXED)})(?:\.(\w+)|\[[^\]]*\])(\s*=(?!=))?")


class Turn(Struct, frozen=True):
    """One run of the command."""

    done: Done
    requests: list[Received]

    @property
    def results(self) -> list[str]:
        """What the tools gave to the model, all of the last request."""
        return [m["content"] for m in self.requests[-1].body["messages"] if m["role"] == "tool"]

    def events(self, *types: str) -> list[dict[str, Any]]:
        """The payloads of these types, of a run with --json."""
        lines = [json.decode(line) for line in self.done.out.splitlines()]
        return [line["payload"] for line in lines if line["type"] in types]


class Stage:
    """A home with one plugin in it."""

    def __init__(self, tmp_path: Path, theme: str, language: str, without: str = "") -> None:
        self.theme, self.language = theme, language
        self.home: HomeDir = home(tmp_path)
        self._names = tmp_path / "names.txt"
        self._env = {"RECORD_NAMES": str(self._names), "RECORD_WITHOUT": without}
        plugins = self.home.cru / "plugins"
        plugins.mkdir(parents=True)
        shutil.copy(HERE / theme / f"plugin.{language}", plugins / f"{theme}.{language}")

    @property
    def folder(self) -> Path:
        return self.home.project

    @property
    def called(self) -> set[str]:
        """The names that the plugin has called."""
        lines = self._names.read_text().splitlines() if self._names.exists() else []
        return {line.split(" ")[1] for line in lines if line.split(" ")[0] == self.theme}

    def turn(self, script: Script, *argv: str, prompt: str = "go on", mode: str = "trust", own: str = "") -> Turn:
        """A whole turn that must end well. `own` are lines of [plugins.THEME]; `{url}` in them is the server's address."""
        with server(script) as model:
            config = f'mode = "{mode}"\n[plugins.{self.theme}]\n{own.replace("{url}", model.url)}\n'
            self.home.configure(config, model.url)
            done = cru(*argv, prompt, home=self.home, script=LAUNCHER, env=self._env)
        assert done.code == 0 and model.requests, done
        assert "is not loaded" not in done.err, done.err
        return Turn(done, model.requests)

    def terminal(self, url: str, *argv: str, mode: str = "trust") -> Terminal:
        """The command on a terminal, for a model at that address."""
        self.home.configure(f'mode = "{mode}"\n', url)
        return pty(*argv, home=self.home, script=LAUNCHER, env=self._env)


def themes() -> list[tuple[str, str]]:
    """Every theme with each of its languages."""
    return [(f.parent.name, f.suffix[1:]) for f in sorted(HERE.glob("*/plugin.*")) if f.with_name("play.py").exists()]


def play(tmp_path: Path, theme: str, language: str, without: str = "") -> set[str]:
    """Run a theme; AssertionError if something else comes out. The names that its plugin called."""
    stage = Stage(tmp_path, theme, language, without)
    scene: Any = import_module(f"tests.programs.{theme}.play")
    scene.play(stage)
    return stage.called


def written(theme: str, language: str) -> set[str]:
    """The names that stand in the text of a theme's plugin."""
    source = (HERE / theme / f"plugin.{language}").read_text()
    imported = [
        one.strip() for match in IMPORTED.finditer(source) for one in (match[1] or match[2]).split(",") if one.strip()
    ]
    used = re.findall(rf"(?<![\w.])((?:{'|'.join(imported)})(?:(?:\.[a-z_]+)+|(?=\()))", source) if imported else []
    found = {name for text in (*DOTTED.findall(source), *used) if (name := _name(text))}
    keyed = [match for match in KEYED.finditer(source) if f"{match[1]}.{match[2]}" not in NAMES]
    return found | {match[1] + (ASSIGN if match[3] else READ) for match in keyed}


def wanted() -> set[str]:
    """Every name that there is; a table with keys as what reads and what assigns it."""
    keys = {
        path + sign
        for path, pair in INDEXED.items()
        for sign, target in zip((READ, ASSIGN), pair, strict=True)
        if target
    }
    return {*NAMES, *CONSTANTS, *keys}


def _name(dotted: str) -> str:
    """The longest name that the text begins with; a word of Python has an underscore behind it."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        name = ".".join(parts[:count])
        for one in (name, name.removesuffix("_")):
            if one in NAMES or one in CONSTANTS:
                return one
    return ""
