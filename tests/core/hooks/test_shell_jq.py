"""`jq` for hooks where the machine has none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.core.hooks.running import Hooks

from cru.core.hooks.launch import shells


@pytest.fixture
def without_jq(tmp_path: Path) -> Iterator[Hooks]:
    """A machine with a few programs, and no jq."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    for name in ("bash", "sh", "cat", "env"):
        found = shutil.which(name)
        assert found
        (bin_folder / name).symlink_to(found)
    hooks = Hooks(tmp_path)
    hooks.env["PATH"] = str(bin_folder)
    yield hooks
    shells.jq_stand_in.cache_clear()


OPTIONS: list[tuple[str, str, str]] = [
    ("jq .a", '{"a":1}', "1\n"),
    ("jq -r .a", '{"a":"x"}', "x\n"),
    ("jq -j '.[]'", '["a","b"]', "ab"),
    ("jq -c .", '{"a": [1, 2]}', '{"a":[1,2]}\n'),
    ("jq -cs .", "1 2", "[1,2]\n"),
    ("jq -nc '{a: 1}'", "", '{"a":1}\n'),
    ("jq -R .", "text\n", '"text"\n'),
    ("jq -n --arg x y '$x'", "", '"y"\n'),
    ("jq -nc --argjson x '{\"k\":1}' '$x.k'", "", "1\n"),
    ("jq -r '.tool_input.command // empty | test(\"rm\")'", '{"tool_input":{"command":"rm x"}}', "true\n"),
]


@pytest.mark.parametrize(("command", "given", "out"), OPTIONS)
def test_s6_its_options(without_jq: Hooks, command: str, given: str, out: str) -> None:
    assert without_jq.out(command, given.encode()) == out


@pytest.mark.parametrize(("given", "status"), [("true", 0), ("false", 1), ("null", 1)])
def test_s6_its_exit_status(without_jq: Hooks, given: str, status: int) -> None:
    assert without_jq.run("jq -e .", given.encode()).exit == status


def test_it_is_there_for_scripts_too_and_for_every_dialect(without_jq: Hooks) -> None:
    without_jq.script("x", "#!/usr/bin/env bash\njq -r .a\n", 0o755)
    assert without_jq.out("./x", b'{"a":"b"}', dialect="claude") == "b\n"
    assert without_jq.out("command -v jq >/dev/null && ./x", b'{"a":"b"}') == "b\n"


def test_the_machines_own_comes_first(without_jq: Hooks) -> None:
    without_jq.script("bin/jq", "#!/bin/sh\necho own\n", 0o755)
    assert without_jq.out('jq .; echo "${CRU_JAQ-none}"') == "own\nnone\n"


def test_without_any_the_person_is_told(without_jq: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shells, "find", lambda name, path: None if name == "jaq" else shells.USUAL_PLACES)
    assert shells.jq_stand_in("/nowhere") == ()
    monkeypatch.undo()
    monkeypatch.setattr(shells, "jq_stand_in", lambda path: ())
    made = without_jq.run("jq . || command -v jq || echo fallback")
    assert made.stdout == "fallback\n"
    assert made.note == 'there is no jq here; install it, or: pip install "cru[shell]"'


def test_without_a_path_the_shells_own_stays(without_jq: Hooks) -> None:
    del without_jq.env["PATH"]
    assert without_jq.out("cat; echo ${CRU_JAQ-none}", b"x ") == "x none\n"


def test_the_stand_in_can_be_run() -> None:
    assert os.access(shells.JQ_FOLDER / "jq", os.X_OK)


@pytest.mark.parametrize(
    ("stderr", "is_missing"),
    [
        ("bash: line 1: jq: command not found", True),
        ("sh: 1: jq: not found", True),
        ("bash: line 1: myjq: command not found", False),
        ("bash: line 1: ./jq: not found", False),
        ("bash: line 1: jq-x: command not found", False),
    ],
)
def test_only_a_jq_that_is_missing_is_told(stderr: str, is_missing: bool) -> None:
    assert shells.missed_jq(stderr) is is_missing
