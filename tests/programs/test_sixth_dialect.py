"""A sixth dialect of command hooks is one folder and its row: the real command reads its files and obeys its hooks; no other code does."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest
from msgspec import json
from tests.core.hooks.dialect_world import about
from tests.kit import Call, Done, HomeDir, Reply, cru, home, server
from tests.kit.relay import FOLDER, add_relay
from tests.kit.scripts import shebang

from cru.core.events import payloads
from cru.core.hooks import dialects
from cru.core.hooks.loader import load_hooks
from cru.core.hooks.model.entry import HookSource
from cru.core.hooks.model.mapping import Dialect
from cru.core.hooks.model.status import Activation, LoadPolicy

START = f"""{shebang()}import sys
from cru.core.hooks import dialects
dialects.__path__.append({str(FOLDER)!r})
from cru.core.hooks.dialects import relay
dialects.FOOTPRINTS["relay"] = relay.FOOTPRINT
from cru.faces.cli.entry import run_and_exit
run_and_exit(sys.argv[1:])
"""
LONGEST = 150
GUARD = 'grep -q \'"line":"rm\' && echo "veto no removing in $RELAY_ROOT" || true'
REWRITE = """grep -q '"line":"date' && echo 'instead {"line": "echo rewritten by $RELAY_EVENT"}' || true"""
HOOKS = [
    {"on": "about_to_run", "only": "terminal", "run": GUARD},
    {"on": "about_to_run", "only": "terminal", "run": REWRITE},
    {"on": "moon_rises", "run": "true"},
]


@pytest.fixture
def here(tmp_path: Path) -> HomeDir:
    made = home(tmp_path)
    (made.path / ".relay").mkdir()
    (made.path / ".relay" / "hooks.json").write_bytes(json.encode({"hooks": HOOKS}))
    start = made.path / "cru-with-relay"
    start.write_text(START)
    start.chmod(0o755)
    return made


def turn(here: HomeDir, *commands: str) -> tuple[Done, list[str]]:
    """A turn in which the model calls `bash` with these; the results that it reads."""
    calls = [Call("bash", {"command": command}) for command in commands]
    with server([Reply(calls=calls), Reply("done")]) as model:
        here.configure('mode = "trust"\n[hooks]\ndialects = ["relay"]\n', model.url)
        done = cru("go", home=here, script=here.path / "cru-with-relay")
        messages = model.requests[-1].body["messages"]
    assert done.code == 0, done
    return done, [message["content"] for message in messages if message["role"] == "tool"]


@pytest.mark.slow
def test_it_blocks_one_call_and_rewrites_another(here: HomeDir) -> None:
    (here.project / "kept").write_text("")
    _, (removed, dated, listed) = turn(here, "rm kept", "date", "ls")
    assert f"no removing in {here.project}" in removed and (here.project / "kept").exists()
    assert dated.strip() == "rewritten by" and listed.strip() == "kept"


@pytest.mark.slow
def test_its_hooks_are_listed_and_explained(here: HomeDir) -> None:
    def hooks(*words: str) -> Done:
        return cru("hooks", *words, home=here, script=here.path / "cru-with-relay")

    here.configure('[hooks]\ndialects = ["relay"]\n')
    listed = hooks("list", "--all").out
    assert listed.count("relay-") == len(HOOKS) and "cru does not look at the sky" in listed
    assert "about_to_run" in hooks("test", "about_to_run", "--tool", "terminal").out


def test_without_its_row_its_name_is_none(here: HomeDir) -> None:
    here.configure('[hooks]\ndialects = ["relay"]\n')
    assert "there are no hooks of `relay`" in cru("hooks", "list", home=here).err


# the hook in the file → what cru says of it
BROKEN = {
    "no object": ("x", "a hook must be an object"),
    "no event": ({"run": "true"}, "`on` is missing"),
    "an event that is a number": ({"on": 7, "run": "true"}, "`on` must be a text"),
    "an event of nobody": (
        {"on": "about_to_rum", "run": "true"},
        "relay has no event about_to_rum, so this never runs",
    ),
    "a matcher that is a list": ({"on": "about_to_run", "only": [], "run": "true"}, "`only` must be a text"),
    "no command": ({"on": "about_to_run"}, "its `command` is blank, so it would do nothing"),
    "a command that is a list": ({"on": "about_to_run", "run": ["true"]}, "`run` must be a text"),
}


@pytest.mark.parametrize(("hook", "said"), BROKEN.values(), ids=BROKEN)
def test_one_bad_entry_is_reported_and_costs_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, hook: object, said: str
) -> None:
    add_relay(monkeypatch)
    source = HookSource("relay", "user", tmp_path / "hooks.json", json.encode({"hooks": [hook, *HOOKS]}).decode())
    loaded = load_hooks(
        [source], dialects.load_dialects(["relay"]), LoadPolicy(accepted=frozenset({"relay"})), about(tmp_path)
    )
    problems = [problem.text for problem in loaded.problems if problem.loses_hooks]
    assert problems + [status.detail for status in loaded.of(Activation.BROKEN)] == [said]
    assert [entry.command for entry in loaded.active()] == [GUARD, REWRITE]


def test_it_is_short() -> None:
    assert sum(len(path.read_text().splitlines()) for path in FOLDER.rglob("*.py")) <= LONGEST


# nothing else knows a dialect ------------------------------------------------------------------------------------------------------

SOURCE = Path(dialects.__file__).parents[4]


def _elsewhere(words: Collection[str]) -> Iterator[tuple[Path, ast.Module]]:
    """The modules in which one of the words stands at all; to parse them all takes seconds."""
    for path in sorted((SOURCE / "cru").rglob("*.py")):
        if not path.is_relative_to(Path(dialects.__file__).parent):
            source = path.read_text()
            if any(word in source for word in words):
                yield path, ast.parse(source)


def _texts(tree: ast.Module) -> Iterator[str]:
    """Every text of a module that is no docstring."""
    loose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in loose:
            yield node.value


def _foreign(loaded: dict[str, Dialect]) -> set[str]:
    return {event for name in dialects.foreign_names() for event in loaded[name].events}


@pytest.mark.slow
def test_no_event_of_another_system_is_named_elsewhere() -> None:
    events = {event for event in _foreign(dialects.load_dialects()) if re.fullmatch(r"(?:[A-Z][a-z]+){2,}", event)}
    assert {"PreToolUse", "BeforeTool"} <= events
    ours = set(vars(payloads))  # FileChanged is one of our payloads, too
    texts = {(path.name, text) for path, tree in _elsewhere(events) for text in _texts(tree)}
    assert {(name, text) for name, text in texts if text in events - ours} == set()


@pytest.mark.slow
def test_no_table_is_keyed_by_dialects_elsewhere() -> None:
    names = set(dialects.FOOTPRINTS)
    found = []
    for path, tree in _elsewhere(names):
        for node in ast.walk(tree):
            if isinstance(node, ast.Dict):
                values = [key.value for key in node.keys if isinstance(key, ast.Constant)]
            elif isinstance(node, ast.Tuple | ast.List | ast.Set):
                values = [item.value for item in node.elts if isinstance(item, ast.Constant)]
            else:
                continue
            if len(names.intersection(value for value in values if isinstance(value, str))) > 1:
                found.append(f"{path}:{node.lineno}")
    assert found == []
