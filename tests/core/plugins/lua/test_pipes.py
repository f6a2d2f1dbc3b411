"""os.execute and io.popen wait beside the loop, and end with what they wait in."""

from __future__ import annotations

import asyncio
import gc
import os
from pathlib import Path

import pytest
from tests.core.plugins.lua.support import failure, gone, run
from tests.kit.waiting import PATIENCE

from cru.core.plugins.lua.convert import LuaTooSlow
from cru.core.plugins.lua.runtime import LuaVM
from cru.faces.cli.event_loop import WatchedEventLoop

# what is returned → the values
EXECUTE: list[tuple[str, object]] = [
    ("os.execute()", True),
    ("os.execute('true')", (True, "exit", 0)),
    ("os.execute('exit 3')", (None, "exit", 3)),
    ("os.execute('kill -9 $$')", (None, "signal", 9)),
    ("os.execute('cat')", (True, "exit", 0)),
]
READ: list[tuple[str, object]] = [
    ("read('a')", "one\ntwo 0x1F -3e2\n\nend"),
    ("read()", "one"),
    ("read('L', 'l', 'l', 'l', 'l')", ("one\n", "two 0x1F -3e2", "", "end", None)),
    ("read('*l', 4)", ("one", "two ")),
    ("read(4, 4, 'n', 'n', 'n')", ("one\n", "two ", 31, -300.0, None)),
    ("read(0, 1000, 0)", ("", "one\ntwo 0x1F -3e2\n\nend", None)),
    ("seek()", (None, "Illegal seek", 29)),
    ("write('x')", (None, "Bad file descriptor", 9)),
]


@pytest.mark.parametrize(("source", "wanted"), EXECUTE)
def test_execute_gives_what_lua_gives(source: str, wanted: object) -> None:
    assert run(LuaVM(), f"return {source}") == wanted


@pytest.mark.parametrize(("source", "wanted"), READ)
@pytest.mark.parametrize("pause", ["", "sleep 0.02;"])
def test_a_file_of_popen_reads_like_any_other(source: str, wanted: object, pause: str) -> None:
    command = f"printf 'one\\ntwo 0x1'; {pause} printf 'F -3e'; {pause} printf '2\\n\\nend'"
    assert run(LuaVM(), f'local f = io.popen("{command}") return f:{source}'.replace("\n", "\\n")) == wanted


@pytest.mark.slow
def test_lines_and_the_end(tmp_path: Path) -> None:
    source = """local found, f = {}, io.popen("seq 1 100000; exit 7")
    for line in f:lines() do found[#found + 1] = line end
    local kind = io.type(f)
    return #found, found[100000], kind, io.type(f), {f:close()}, io.type(f), pcall(f.read, f)"""
    *rest, ok, error = run(LuaVM(run_seconds=20), source)
    assert rest == [100000, "100000", "file", "file", {2: "exit", 3: 7}, "closed file"]
    assert not ok and "closed file" in error


def test_what_is_written_reaches_the_command(tmp_path: Path) -> None:
    out = tmp_path / "out"
    source = """local name = ...
    local f = io.popen("cat > " .. name, "w")
    f:write("a", 1, ("x"):rep(300000)):flush()
    return io.close(f)"""
    assert run(LuaVM(), source, str(out)) == (True, "exit", 0)
    assert out.read_text() == "a1" + "x" * 300000
    broken = 'local f = io.popen("exec <&-; sleep 1", "w") for n = 1, 9 do r = {f:write(("x"):rep(1e5))} end return r'
    assert run(LuaVM(), broken) == {2: "Broken pipe", 3: 32}


def test_it_is_the_default_input_and_output_if_asked_so(tmp_path: Path) -> None:
    out = tmp_path / "out"
    source = """io.input(io.popen("echo one; echo two"))
    local first, rest = io.read(), {}
    for line in io.lines() do rest[#rest + 1] = line end
    io.output(io.popen("cat > " .. ..., "w"))
    io.write("said")
    io.close()
    do local f <close> = io.popen("yes") f:read() end
    return first, rest"""
    assert run(LuaVM(), source, str(out)) == ("one", ["two"])
    assert out.read_text() == "said"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("io.popen()", "string expected, got no value"),
        ("io.popen('true', 'rw')", "invalid mode"),
        ("io.popen('true'):read('x')", "invalid format"),
        ("io.popen('true', 'w'):write({})", "string expected, got table"),
        ("('x'):gsub('x', function() os.execute('true') end)", "not possible here"),
    ],
)
def test_wrong_use_is_an_error_with_its_line(source: str, said: str) -> None:
    message = failure(LuaVM(), f"local _ = {source}").message.replace("got nil", "got no value")
    assert said in message and message.startswith("test.lua:1:")


WAITS = ["os.execute(c)", "io.popen(c):read('a')", "io.popen(c):close()", "for _ in io.popen(c):lines() do end"]


@pytest.mark.parametrize("source", [*WAITS, "io.popen('cat; ' .. c, 'w'):close()"])
def test_a_limit_ends_the_program_and_what_it_started(tmp_path: Path, source: str) -> None:
    pid = tmp_path / "pid"
    code = f"local c = 'sleep 60 & echo $! > {pid}; wait' {source}"
    error = failure(LuaVM(wait_seconds=0.5), code)
    assert isinstance(error, LuaTooSlow) and "waited longer than 0.5 s" in error.message
    assert gone(int(pid.read_text()))


def test_others_go_on_while_it_waits() -> None:
    vm = LuaVM()

    async def main() -> int:
        waiting = asyncio.ensure_future(vm.run(vm.load("return os.execute('sleep 0.3')", "@x.lua")))
        count = 0
        while not waiting.done():
            await asyncio.sleep(0.01)
            count += 1
        return count

    assert asyncio.run(main()) > 5


def test_a_command_that_nobody_holds_any_more_ends_but_what_it_was_given_is_used(tmp_path: Path) -> None:
    vm, out = LuaVM(), tmp_path / "out"
    source = 'io.popen("yes") io.popen("cat > " .. ..., "w"):write("kept") collectgarbage() collectgarbage()'

    async def main() -> None:
        await vm.run(vm.load(source, "@x.lua"), str(out))
        vm.start(vm.load("return 1", "@y.lua"))
        gc.collect()
        loop = asyncio.get_running_loop()
        assert isinstance(loop, WatchedEventLoop) and loop.children
        async with asyncio.timeout(PATIENCE):
            while loop.children:
                await asyncio.sleep(0.01)

    with asyncio.Runner(loop_factory=WatchedEventLoop) as runner:
        runner.run(main())
    assert out.read_text() == "kept"


def test_pipes_and_terminals_are_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    place = str(tmp_path / "pipe")
    vm = LuaVM()
    for source in ("return io.open(...)", "return io.open(..., 'w')", "return loadfile(...)"):
        found, message, *_ = run(vm, source, place)
        assert found is None and place in message and "is a pipe" in message
    assert "is a device" in run(vm, "return io.open('/dev/ptmx')")[1]
    for source in ("io.lines(...)", "io.input(...)", "io.output(...)", "dofile(...)"):
        assert "is a pipe" in failure(vm, source, place).message
    assert run(vm, "io.open('/dev/null', 'w'):write('x'):close() return #io.open('/dev/urandom'):read(16)") == 16
