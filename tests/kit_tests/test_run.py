"""Running a program: its end, its output, its death. A small shell script stands in for `cru`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.kit import Clock, HomeDir, cru, kill_at, pty, start, wait_until
from tests.kit.processes import is_running


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "program"
    path.write_text('#!/bin/sh\neval "$1"\n')
    path.chmod(0o755)
    return path


def test_a_run_gives_code_and_both_streams(home: HomeDir, script: Path) -> None:
    done = cru("pwd; echo no >&2; exit 3", home=home, script=script)
    assert (done.code, done.out, done.err) == (3, f"{home.project}\n", "no\n")


@pytest.mark.parametrize(("given", "seen"), [(None, ""), ("ü\n", "ü\n"), (b"raw", "raw")])
def test_input_is_a_pipe_or_nothing(home: HomeDir, script: Path, given: str | bytes | None, seen: str) -> None:
    assert cru("cat", home=home, input=given, script=script).out == seen


def test_the_environment_is_clean(home: HomeDir, script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    names = {
        line.partition("=")[0] for line in cru("env", home=home, env={"MINE": "1"}, script=script).out.splitlines()
    }
    assert {"PATH", "HOME", "LANG", "TERM", "MINE"} <= names
    assert "OPENAI_API_KEY" not in names


def test_a_run_that_does_not_end_fails_with_its_output(home: HomeDir, script: Path) -> None:
    with pytest.raises(AssertionError, match="so far"):
        cru("echo so far; sleep 30", home=home, timeout=1, script=script)


def test_kill_at_a_moment_that_the_output_names(home: HomeDir, script: Path) -> None:
    with start("echo one; sleep 30", home=home, script=script) as run:
        assert kill_at(run, lambda: "one" in run.out)
        assert run.wait().code == -9


def test_kill_at_a_time_after_the_end_says_that_it_had_ended(home: HomeDir, script: Path) -> None:
    with start("true", home=home, script=script) as run:
        run.wait()
        assert not kill_at(run, 0.05)


def test_an_interrupt_reaches_the_process(home: HomeDir, script: Path) -> None:
    with start(
        'trap "echo caught; exit 7" INT; echo ready; while :; do sleep 0.02; done', home=home, script=script
    ) as run:
        run.wait_for("ready")
        run.interrupt()
        assert (run.wait().code, run.out) == (7, "ready\ncaught\n")


def test_nothing_of_a_started_group_outlives_its_block(home: HomeDir, script: Path) -> None:
    with start("sleep 30 & echo $!; wait", home=home, script=script) as run:
        run.wait_for("\n")
        child = int(run.out)
        assert is_running(child)
    wait_until(lambda: not is_running(child))


def test_a_terminal_is_eighty_by_twenty_four(home: HomeDir, script: Path) -> None:
    with pty("stty size; test -t 0 && echo tty; read x; echo got $x; exit 4", home=home, script=script) as terminal:
        terminal.expect("24 80")
        terminal.expect("tty")
        terminal.line("word")
        terminal.expect("got word")
        assert terminal.wait() == 4


def test_the_screen_shows_what_a_person_sees(home: HomeDir, script: Path) -> None:
    with pty(r"printf 'wrong\r\033[K\033[1mright\033[0m\033[5;3Hdown'; read x", home=home, script=script) as terminal:
        terminal.expect_screen("down")
        assert terminal.screen() == "right\n\n\n\n  down"
        terminal.key("c-c")
        assert terminal.wait() in (-2, 130)


def test_the_terminal_says_where_its_cursor_is(home: HomeDir, script: Path) -> None:
    command = r"stty raw -echo; printf 'ab\033[6n'; head -c 6 | od -An -c; stty sane"
    with pty(command, home=home, script=script) as terminal:
        terminal.expect("033   [   1   ;   3   R")


def test_an_expectation_that_fails_shows_the_screen(home: HomeDir, script: Path) -> None:
    with pty("echo something else; read x", home=home, script=script) as terminal:
        terminal.expect("something ")
        with pytest.raises(AssertionError, match="something else"):
            terminal.expect("this", timeout=0.2)


def test_the_home_reads_logs_and_defaults_yield_to_the_text(home: HomeDir) -> None:
    assert home.log() == []
    home.context("x").mkdir(parents=True)
    (home.context("x") / "context.jsonl").write_text('{"id":"1"}\n\n{"id":"2"}\n')
    home.configure('model = "other"\n[permissions]\n', "http://127.0.0.1:1/v1")
    assert [entry["id"] for entry in home.log("x")] == ["1", "2"]
    text = (home.cru / "config.toml").read_text()
    assert 'model = "mock"' not in text and text.index("base_url") < text.index("[permissions]")


def test_the_tests_own_environment_has_no_settings_of_a_person() -> None:
    assert not [name for name in os.environ if name.startswith(("CRU_", "OPENAI_", "ANTHROPIC_"))]
    assert list(Path(os.environ["HOME"]).glob(".cru")) == []


def test_the_clock_moves_only_when_told() -> None:
    import asyncio

    clock = Clock(wall=1000.0)
    asyncio.run(clock.sleep(2.5))
    clock.set_wall(50.0)
    assert (clock.monotonic(), clock.time(), clock.slept) == (2.5, 50.0, [2.5])
