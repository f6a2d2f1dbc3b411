"""The differential tables: a case that could not fail is an error, and each expectation sees what it is about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.kit.differential.__main__ import play_table
from tests.kit.differential.cases import CaseError, Expectation, load
from tests.kit.differential.compare import Firing, Play, differences
from tests.kit.steps import Call, Reply
from tests.kit.wire import render

GOOD = {"id": "a", "source": "seen", "about": "It is so.", "expect": {"requests": 1}}


@pytest.mark.parametrize(
    ("case", "wrong"),
    [
        ({**GOOD, "expect": {}}, "a: it expects nothing"),
        ({**GOOD, "expect": {"request": []}}, "a: it expects nothing"),
        ({**GOOD, "difference": {"reason": "so", "cru": {"requests": 1}}}, "a: its difference is none"),
        ({**GOOD, "difference": {"reason": "", "cru": {"requests": 2}}}, "a: its difference has no reason"),
        ({**GOOD, "difference": {"reason": "so", "cru": {"requets": 2}}}, "unknown field `requets`"),
        ({**GOOD, "expect": {"requets": 2}}, "unknown field `requets`"),
    ],
)
def test_a_case_that_says_nothing_is_an_error(tmp_path: Path, case: dict[str, Any], wrong: str) -> None:
    path = tmp_path / "table.json"
    table = {"program": "x", "version": "1", "dialect": "codex"}
    path.write_bytes(msgspec.json.encode({**table, "cases": [GOOD | {"id": "b"}]}))
    assert [known.id for known in load(path).cases] == ["b"]
    path.write_bytes(msgspec.json.encode({**table, "cases": [case]}))
    with pytest.raises(CaseError, match=wrong):
        load(path)


def test_two_cases_of_one_name_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    path.write_bytes(msgspec.json.encode({"program": "x", "version": "1", "dialect": "codex", "cases": [GOOD, GOOD]}))
    with pytest.raises(CaseError, match="a: there is another one of that name"):
        load(path)


def played(folder: Path) -> Play:
    (folder / "ran").write_text("")
    (folder / "notes.txt").write_text("several\nlines")
    stdin = {"tool_input": {"command": f"cd {folder}", "todos": [{"content": "a"}]}, "count": 1, "active": True}
    firings = [Firing("Start", {}, {"NAME": "1"}), Firing("Tool", stdin, {}), Firing("Tool", {"second": "2"}, {})]
    return Play(Path("/home/you"), folder, firings, ["first", "hook said: no\nmore"], 0, "done")


HOLD: list[dict[str, Any]] = [
    {"stdin": {"Tool": {"tool_input.command": "cd $PROJECT", "tool_input.todos.0.content": "a", "count": 1}}},
    {"stdin": {"Tool": {"tool_input": {"command": "…"}, "tool_input.nothing": None, "active": True}}},
    {"stdin": {"Tool#2": {"second": "2"}}},
    {"env": {"Start": {"NAME": "1", "OTHER": None}}},
    {"heard": ["Start", "Tool", "Tool"], "count": {"Tool": 2, "Stop": 0}},
    {"requests": 2, "request": ["said: no", "hook…more"], "not_request": ["first"]},
    {"ran": True, "files": {"notes.txt": "several…", "gone.txt": None}, "exit": 0},
    {"shown": ["done"], "not_shown": ["failed"]},
]
FAIL: list[dict[str, Any]] = [
    {"stdin": {"Tool": {"tool_input.command": "cd"}}},
    {"stdin": {"Tool": {"count": True}}},
    {"stdin": {"Tool": {"active": 1}}},
    {"stdin": {"Tool": {"gone": "…"}}},
    {"stdin": {"Tool#3": {"second": None}}},
    {"env": {"Start": {"NAME": "2"}}},
    {"heard": ["Tool", "Start", "Tool"]},
    {"count": {"Tool": 1}},
    {"heard": []},
    {"requests": 1},
    {"request": ["first"]},
    {"not_request": ["more"]},
    {"ran": False},
    {"files": {"notes.txt": None}},
    {"files": {"gone.txt": "…"}},
    {"exit": 1},
    {"shown": ["failed"]},
    {"not_shown": ["done"]},
]


@pytest.mark.parametrize("expect", HOLD, ids=str)
def test_an_expectation_holds(tmp_path: Path, expect: dict[str, Any]) -> None:
    assert differences(msgspec.convert(expect, Expectation), played(tmp_path)) == []


@pytest.mark.parametrize("expect", FAIL, ids=str)
def test_an_expectation_that_does_not_hold_is_told(tmp_path: Path, expect: dict[str, Any]) -> None:
    assert len(differences(msgspec.convert(expect, Expectation), played(tmp_path))) == 1


def test_a_program_that_is_missing_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "table.json"
    path.write_bytes(msgspec.json.encode({"program": "x", "version": "1", "dialect": "crush", "cases": [GOOD]}))
    table = load(path)
    assert play_table(table, list(table.cases), {"--peer-only"}) == 0
    assert "x 1: 1 cases; the program is NOT INSTALLED" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("/v1/messages?beta=true", b'"type":"tool_use"'),
        ("/v1/responses", b'"type":"function_call"'),
        ("/v1beta/models/m:streamGenerateContent?alt=sse", b'"functionCall"'),
        ("/v1/chat/completions", b'"tool_calls"'),
    ],
)
def test_each_program_is_answered_in_its_language(path: str, kept: bytes) -> None:
    assert kept in render(path, Reply(calls=[Call("bash", {"command": "true"})]), 0, stream=True)
