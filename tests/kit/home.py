"""A fresh home folder for a run of `cru`, with nothing of this machine in it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import msgspec

# Coverage measures child processes through these.
KEPT = ("COVERAGE_", "COV_CORE_")


class HomeDir:
    """HOME is `path`, the working directory is `project` (empty), the configuration is in `cru` (= path/.cru)."""

    def __init__(self, path: Path, project: Path) -> None:
        self.path, self.project, self.cru = path, project, path / ".cru"
        self.sandbox = "off"
        """The mode of the sandbox; "": what a person has who says nothing."""

    @property
    def env(self) -> dict[str, str]:
        """A clean environment: PATH with the `cru` under test first, HOME, LANG, TERM, and what coverage of children needs."""
        kept = {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
        path = os.pathsep.join((str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"))
        # to load the model for search by meaning costs a second a run: a test that wants it sets it to ""
        own = {"PATH": path, "HOME": str(self.path), "LANG": "C.UTF-8", "TERM": "dumb", "CRU_EMBEDDINGS": "off"}
        return {**own, "CRU_SANDBOX": self.sandbox, **kept} if self.sandbox else {**own, **kept}

    def configure(self, config: str = "", url: str = "") -> None:
        """Write config.toml. With a url, `model`, `base_url` and `api_key` are set unless the text sets them itself."""
        defaults = {"model": "mock", "base_url": url, "api_key": "kit-key"} if url else {}
        own = {line.partition("=")[0].strip() for line in config.splitlines()}
        lines = [f'{key} = "{value}"\n' for key, value in defaults.items() if key not in own]
        self.cru.mkdir(parents=True, exist_ok=True)
        (self.cru / "config.toml").write_text("".join(lines) + config)

    def context(self, name: str = "default") -> Path:
        """The folder of a context (it may not exist yet); "default": also the own one of `project`, or of the only project there is."""
        return self.cru / "contexts" / (self._current() if name == "default" else name)

    def _current(self) -> str:
        file = self.cru / "session.json"
        records = msgspec.json.decode(file.read_bytes()).get("projects", {}) if file.is_file() else {}
        own = records.get(os.path.realpath(self.project)) or (next(iter(records.values())) if len(records) == 1 else {})
        return str(own.get("current", "default"))

    def lines(self, name: str, file: str) -> list[dict[str, Any]]:
        """The records of a JSON-lines file of a context; empty if there is none."""
        path = self.context(name) / file
        return [msgspec.json.decode(line) for line in path.read_bytes().splitlines() if line] if path.exists() else []

    def log(self, name: str = "default") -> list[dict[str, Any]]:
        """What was said in a context."""
        return self.lines(name, "context.jsonl")


def home(tmp_path: Path, *, config: str = "", url: str = "") -> HomeDir:
    """A new home and a new project folder inside tmp_path, configured for the model server at `url` (…/v1)."""
    here = HomeDir(tmp_path / "home", tmp_path / "project")
    here.path.mkdir()
    here.project.mkdir()
    if config or url:
        here.configure(config, url)
    return here
