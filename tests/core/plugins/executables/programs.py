"""What tests of plugins that are programs share: programs of a few lines, those of tests/programs/executables, and runs of the command."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec
from tests.kit import Done, HomeDir, cru

IMPATIENT = Path(__file__).with_name("impatient.py")
"""The command, waiting for a schema 0.3 s only."""
SHAPES = Path(__file__).parents[3] / "programs" / "executables"


def program(home: HomeDir, name: str, source: str, executable: bool = True) -> Path:
    """A file in the folder of plugins."""
    path = home.cru / "plugins" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    path.chmod(0o755 if executable else 0o644)
    return path


def tool(home: HomeDir, name: str, body: str, schema: str = "", first: str = "") -> Path:
    """A tool of that name in bash; `schema` are more fields, `first` is what runs before the schema is printed."""
    said = f'{{"name": "{name}", "description": "About {name}"{schema and ", " + schema}}}'
    return program(home, name, f"#!/bin/bash\n{first}\nif [[ $1 == --schema ]]; then echo '{said}'; exit; fi\n{body}\n")


def shape(home: HomeDir, *names: str) -> None:
    """Programs as people write them."""
    folder = home.cru / "plugins"
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        copy: Any = shutil.copytree if (SHAPES / name).is_dir() else shutil.copy
        copy(SHAPES / name, folder / name)


def script(home: HomeDir, *replies: str, config: str = "") -> None:
    """The model says this; `call: NAME JSON` is a call, other text an answer."""
    texts = [reply if reply.startswith("call: ") else f"text: {reply}" for reply in replies]
    (home.project / "model.txt").write_text("\n---\n".join(texts) + "\n")
    home.configure(f'model = "scripted:{home.project}/model.txt"\n{config}')


def calls(home: HomeDir, *made: str, config: str = "", flags: tuple[str, ...] = (), **options: Any) -> Done:
    """One run in which the model makes these calls, one a reply, and then says `done`."""
    script(home, *(f"call: {call}" for call in made), "done", config=config)
    return cru("-t", *flags, "go", home=home, **options)


def results(home: HomeDir, context: str = "default") -> list[str]:
    """What calls gave, in order."""
    return [entry["content"] for entry in home.log(context) if entry["entry_type"] == "tool_result"]


def listed(home: HomeDir, *flags: str) -> dict[str, dict[str, Any]]:
    """The plugins of one's own, by name."""
    run = cru("plugin", "list", "--json", *flags, home=home)
    assert run.code == 0, run.err
    rows: list[dict[str, Any]] = msgspec.json.decode(run.out)
    return {row["name"]: row for row in rows if row["layer"] != "bundled"}
