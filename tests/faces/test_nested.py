"""Runs of cru that tools and plugins start within a turn: contexts below contexts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.kit import Call, Hang, HomeDir, Received, Reply, Step, cru, server, start
from tests.kit.waiting import wait_until

VARIABLES = "CHIBI_TOOL_ARGS CHIBI_TOOL_NAME CHIBI_HOOK CHIBI_HOOK_DATA CHIBI_VERBOSE"


def program(home: HomeDir, name: str, body: str) -> None:
    path = home.cru / "plugins" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = f'{{"name": "{name}", "description": "About {name}", "parameters": {{"type": "object"}}}}'
    path.write_text(f"#!/bin/bash\nif [[ $1 == --schema ]]; then echo '{schema}'; exit; fi\n{body}\n")
    path.chmod(0o755)


def lua(home: HomeDir, name: str, body: str) -> None:
    path = home.cru / "plugins" / name / "init.lua"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'--- Starts a run.\n-- @tool name="{name}"\nfunction {name}() {body} end\n')


def texts(request: Received) -> list[str]:
    return [str(message["content"]) for message in request.body["messages"]]


def rule(*outer: Call) -> Any:
    """The outer run makes these calls and ends; inner runs say what they were asked."""

    def answer(request: Received) -> Step:
        said = texts(request)
        if "outer" not in said:
            return Reply(f"inner: {said[-1]}")
        done = sum(message["role"] == "tool" for message in request.body["messages"])
        return Reply(calls=[outer[done]]) if done < len(outer) else Reply("outer done")

    return answer


def results(home: HomeDir, name: str = "default") -> list[str]:
    return [entry["content"] for entry in home.log(name) if entry["entry_type"] == "tool_result"]


def test_a_bash_call_starts_a_run_on_another_context(home: HomeDir) -> None:
    with server(rule(Call("bash", {"command": "cru -C other 'a task'"}))) as model:
        home.configure(url=model.url)
        run = cru("-t", "outer", home=home)
    assert run.code == 0 and run.out == "outer done\n"
    assert results(home) == ["inner: a task"] or results(home) == ["inner: a task\n"]
    first = home.log("other")[0]
    assert first["content"] == "a task" and first["metadata"] == {"source": "user", "parent": "default"}
    assert "parent" not in home.log()[0]["metadata"]
    assert not (home.context("other") / ".lock").exists() and not (home.context() / ".lock").exists()


@pytest.mark.slow
@pytest.mark.parametrize("command", ["cru -C other 'a task'", "chibi -S other -e 'You are brief.' 'a task'"])
def test_a_program_starts_a_run_in_a_clean_environment(home: HomeDir, command: str) -> None:
    program(home, "sub", command)
    program(
        home, "look", f'for name in {VARIABLES}; do echo "$name=${{!name-none}}"; done; echo $CHIBI_CONTEXT $CRU_DEPTH'
    )

    def answer(request: Received) -> Step:
        said = texts(request)
        if any("a task" in text for text in said):
            return (
                Reply("seen")
                if said[-1] != "a task"
                else Reply(calls=[Call("bash", {"command": "env"}), Call("look", {})])
            )
        return Reply("outer done") if "seen" in said[-1] else Reply(calls=[Call("sub", {"secret": "words"})])

    with server(answer) as model:
        home.configure(url=model.url)
        inner = '[plugins.sub]\nera = "env"\n'
        (home.cru / "config.toml").write_text(
            (home.cru / "config.toml").read_text() + inner + '[permissions]\nallow = ["bash", "look"]\n'
        )
        run = cru("-t", "-v", "outer", home=home)
    assert run.code == 0 and run.out == "outer done\n", run.err
    env, look = results(home, "other")
    assert "CRU_DEPTH=2" in env and "CRU_CONTEXT=other" in env
    assert not any(name in env for name in ("CHIBI_TOOL", "CHIBI_HOOK", "CHIBI_CONTEXT", "CHIBI_VERBOSE"))
    assert look.splitlines()[1:] == [
        "CHIBI_TOOL_NAME=look",
        "CHIBI_HOOK=none",
        "CHIBI_HOOK_DATA=none",
        "CHIBI_VERBOSE=none",
        "other 2",
    ]
    if "-e" in command:
        assert (home.context("other") / "system_prompt.md").read_text() == "You are brief."


@pytest.mark.slow
def test_a_lua_plugin_starts_a_run(home: HomeDir) -> None:
    lua(home, "sub", 'return cru.shell.exec("cru", {"-C", "other", "a task"}).stdout')
    with server(rule(Call("sub", {}))) as model:
        home.configure(url=model.url)
        assert cru("-t", "outer", home=home).out == "outer done\n"
    assert [text.strip() for text in results(home)] == ["inner: a task"]


def test_the_same_context_is_refused_at_once_and_the_holder_named(home: HomeDir) -> None:
    with server(rule(Call("bash", {"command": "cru -C default inner; echo code $?"}))) as model:
        home.configure(url=model.url)
        with start("-t", "outer", home=home) as run:
            assert run.wait().out == "outer done\n"
            (said,) = results(home)
    assert "code 4" in said and f"process {run.pid} on " in said
    assert "this run was started from within its turn" in said and "-C NAME" in said
    assert f"kill -INT {run.pid}" not in said


@pytest.mark.slow
def test_runs_that_start_themselves_end(home: HomeDir) -> None:
    """A plugin that starts cru, whose model calls the plugin again."""
    program(home, "again", 'cat >/dev/null; cru -t -C "${CHIBI_CONTEXT}x" deeper 2>&1')
    depths: list[int] = []

    def answer(request: Received) -> Step:
        said = texts(request)
        depths.append(len(said))
        return Reply(said[-1]) if said[-1] not in ("outer", "deeper") else Reply(calls=[Call("again", {})])

    with server(answer) as model:
        home.configure(url=model.url)
        run = cru("-t", "-C", "c", "outer", home=home)
        assert run.code == 0
        assert "runs of cru that start one another are 6 deep, the most is 5" in run.out
        assert "max_nested_runs" in run.out and "Traceback" not in run.out
        assert sorted(p.name for p in (home.cru / "contexts").iterdir()) == ["c" + "x" * n for n in range(6)]
        (home.cru / "config.toml").write_text("max_nested_runs = 1\n" + (home.cru / "config.toml").read_text())
        again = cru("-t", "-C", "d", "outer", home=home)
        assert (
            "are 2 deep, the most is 1" in again.out
            and home.context("dx").exists()
            and not home.context("dxx").exists()
        )


@pytest.mark.slow
def test_a_schema_that_starts_cru_ends_too(home: HomeDir) -> None:
    path = home.cru / "plugins" / "loop"
    path.parent.mkdir(parents=True)
    path.write_text('#!/bin/bash\ncru -C "x$RANDOM" hello >/dev/null\necho \'{"name": "loop", "description": "d"}\'\n')
    path.chmod(0o755)
    with server(lambda request: Reply("ok")) as model:
        home.configure(url=model.url)
        run = cru("hello", home=home, timeout=60)
    assert run.code == 0 and run.out == "ok\n" and "5 deep" not in run.out


@pytest.mark.parametrize("value", ["", "no number", "-3", "9" * 50])
def test_a_depth_that_is_none_counts_as_the_first(home: HomeDir, value: str) -> None:
    with server(lambda request: Reply("ok")) as model:
        home.configure(url=model.url)
        run = cru("hello", home=home, env={"CRU_DEPTH": value, "CRU_CONTEXT": "somebody"})
    assert run.code == 0 and run.out == "ok\n" and run.err == ""
    assert "parent" not in home.log()[0]["metadata"]


def alive(marker: str) -> list[str]:
    """The command lines of processes in which a text stands."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            found += [line] if marker in line else []
    return found


@pytest.mark.slow
@pytest.mark.parametrize("way", ["bash", "program", "lua"])
def test_ending_the_outer_run_ends_the_inner_one_and_what_it_started(home: HomeDir, way: str) -> None:
    program(home, "sub", "cat >/dev/null; exec cru -t -C other inner")
    lua(home, "luasub", 'return cru.shell.exec("cru", {"-t", "-C", "other", "inner"}).stdout')
    call = {
        "bash": Call("bash", {"command": "cru -t -C other inner"}),
        "program": Call("sub", {}),
        "lua": Call("luasub", {}),
    }[way]
    marker = str(int.from_bytes(os.urandom(3), "big") + 10**8)

    def answer(request: Received) -> Step:
        if "outer" in texts(request):
            return Reply(calls=[call])
        return Reply(calls=[Call("bash", {"command": f"sleep {marker}"})])

    with server(answer) as model:
        home.configure(url=model.url)
        with start("-t", "outer", home=home) as run:
            wait_until(lambda: alive(f"sleep {marker}"))
            run.interrupt()
            assert run.wait().code == 130
            assert alive(marker) == []
    assert not (home.context("other") / ".lock").exists() and not (home.context() / ".lock").exists()
    assert (
        home.log("other")[-1]["entry_type"] == "leg_ended"
        and home.log("other")[-1]["metadata"]["cause"] == "interrupted"
    )


def test_a_hang_inside_does_not_keep_the_outer_one_from_ending(home: HomeDir) -> None:
    def answer(request: Received) -> Step:
        if "outer" in texts(request):
            return Reply(calls=[Call("bash", {"command": "cru -C other inner"})])
        return Hang("so far")

    with server(answer) as model:
        home.configure(url=model.url)
        with start("-t", "outer", home=home) as run:
            model.wait(2)
            run.interrupt()
            assert run.wait().code == 130
    assert not (home.context("other") / ".lock").exists()
