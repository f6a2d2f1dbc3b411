"""A pipe, a dead link or nonsense where a file is expected: nobody waits for ever, and nobody sees a traceback."""

from __future__ import annotations

import os

import pytest
from tests.kit import HomeDir, cru

CASES = {
    "trust.json": ("hi", "trust", "hooks list"),
    "grants.json": ("hi",),
    "hooks.json": ("hi", "hooks list"),
    "config.toml": ("hi",),
    "contexts/default/plugin-state.json": ("hi", "fsm list"),
    "contexts/default/context_meta.json": ("hi", "-L"),
    "plugins/x.lua": ("hi", "plugin list"),
    "plugins/x.py": ("hi", "plugin list"),
    "plugins/x/init.lua": ("hi", "plugin list"),
    "plugins/x/other.lua": ("hi", "plugin list"),
    "prompts/compaction.md": ("hi",),
    "prompts/chat.md": ("hi",),
}
FATAL = ("config.toml", "contexts/default/context_meta.json", "prompts/compaction.md", "prompts/chat.md")
RUNS = [(file, command) for file, commands in CASES.items() for command in commands]


def prepare(home: HomeDir, file: str) -> None:
    (home.project / "model.txt").write_text("loop: yes\ntext: fine\n")
    home.configure(f'model = "scripted:{home.project}/model.txt"\n')
    path = home.cru / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)


@pytest.mark.sample(10)
@pytest.mark.parametrize(("file", "command"), RUNS)
def test_a_pipe(home: HomeDir, file: str, command: str) -> None:
    prepare(home, file)
    os.mkfifo(home.cru / file)
    run = (
        cru("--model", f"scripted:{home.project}/model.txt", command, home=home)
        if command == "hi"
        else cru(*command.split(), home=home)
    )
    assert "Traceback" not in run.err
    if file.startswith("plugins/x"):
        assert f"{home.cru / file}: it is not a regular file" in run.err
    if command == "hi" and file not in FATAL:
        is_unknown = file.endswith(
            "plugin-state.json"
        )  # nobody knows whether a workflow is running: the turn is not done
        assert (run.code, run.out) == (3 if is_unknown else 0, "fine\n"), run.err


@pytest.mark.parametrize("file", [*CASES, "contexts/default/context.jsonl", "state.json"])
def test_a_link_to_nothing(home: HomeDir, file: str) -> None:
    prepare(home, file)
    (home.cru / file).symlink_to("/nowhere/at/all")
    run = cru("--model", f"scripted:{home.project}/model.txt", "hi", home=home)
    assert "Traceback" not in run.err and run.code in (0, 1)
    assert run.out == "fine\n" or run.err


DEEP = b'{"a":' * 100_000
NESTED = (
    "trust.json", "grants.json", "hooks.json", "state.json", "contexts/default/plugin-state.json",
    "contexts/default/context_meta.json", "contexts/default/context.json", "contexts/default/context.jsonl",
    "contexts/default/inbox.jsonl", "contexts/default/.lock.json", "plugins/x/plugin.json",
)  # fmt: skip


@pytest.mark.sample(5)
@pytest.mark.parametrize("file", NESTED)
def test_json_that_is_nested_too_deep(home: HomeDir, file: str) -> None:
    prepare(home, file)
    (home.cru / file).write_bytes(DEEP)
    for command in ("hi", "hooks list" if file == "trust.json" else "fsm list"):
        run = cru(*command.split(), home=home)
        assert "Traceback" not in run.err and run.code in (0, 1)
