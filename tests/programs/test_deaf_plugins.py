"""A plugin in Python that hears no cancel: every interrupt and every limit comes out all the same, in time, and nothing new begins."""

from __future__ import annotations

import signal

import pytest
from tests.kit import Call, Done, HomeDir, Reply, pty, server, start

DEAF = """
import asyncio, sys, cru
from pathlib import Path
from cru import fsm, on, schedule
def here(what):
    print('is busy', file=sys.stderr, flush=True)
async def once():
    here('once')
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        pass
    return True
async def ever():
    here('ever')
    while True:
        try:
            await asyncio.sleep(60)
        except BaseException:
            pass
async def below():
    here('below')
    await asyncio.gather(ever())
async def turn():
    print('is in its turn', file=sys.stderr, flush=True)
    await asyncio.sleep(60)
"""
"""Three ways of not hearing: to return, to wait on, to wait for what does not hear."""
ROADS = {
    "a handler": "on('message:received', lambda ctx, event: {how}())\n",
    "a handler of a guarded event": "on('tool:before_call', lambda ctx, event: {how}())\n",
    "a tool": "TOOLS = {{'mend': {{'desc': 'x', 'fn': lambda args: {how}()}}}}\n",
    "a setup": "def setup(cru):\n    return {how}()\n",
    "a teardown": "def teardown(cru):\n    return {how}()\n",
    "a service": "SERVICES = {{'beat': {{'desc': 'x', 'fn': {how}}}}}\non('message:received', lambda ctx, event: turn())\n",
    "a schedule": "schedule(0.05, {how})\non('message:received', lambda ctx, event: turn())\n",
    "a task of its own": "on('message:received', lambda ctx, event: asyncio.create_task({how}()))\n",
}
HOWS = ("once", "ever", "below")
WORKFLOW = """
fsm.define({{'name': 'w', 'initial': 'a', 'states': {{
    'a': {{'to': ['b'], 'exit': {{'call': lambda ctx: {how}(), 'timeout': 1}}}}, 'b': {{'final': True}}}}}})
"""


def placed(home: HomeDir, url: str, source: str) -> None:
    home.configure('mode = "trust"\n', url)
    (home.cru / "plugins").mkdir(parents=True)
    (home.cru / "plugins" / "deaf.py").write_text(DEAF + source)


def ended(home: HomeDir, number: int, *argv: str, is_in_turn: bool = False) -> Done:
    """How a run ends that gets one signal while the plugin is deaf, and, where it is so before, its turn has begun."""
    with start(*argv, home=home) as run:
        run.wait_for("is busy")
        if is_in_turn:
            run.wait_for("is in its turn")
        run.signal(number)
        done = run.wait(30)
    assert done.code == 128 + number and "Traceback" not in done.err and "never retrieved" not in done.err, done
    return done


RUNS = [(road, "ever", signal.SIGTERM) for road in ROADS if road != "a teardown"] + [
    (road, how, signal.SIGINT) for road in ("a handler", "a tool") for how in HOWS
]


@pytest.mark.sample(1)
@pytest.mark.parametrize(("road", "how", "number"), RUNS)
def test_one_signal_ends_the_run(home: HomeDir, road: str, how: str, number: int) -> None:
    with server([Reply(calls=(Call("mend"),)), Reply("never")] * 2) as model:
        placed(home, model.url, ROADS[road].format(how=how))
        done = ended(home, number, "hello", is_in_turn="turn()" in ROADS[road])
        if road in ("a handler", "a setup"):
            assert not model.requests
        else:
            assert len(model.requests) <= 1
    if how == "ever" and road in ("a handler", "a tool"):
        assert "deaf.py:18): it swallowed the interrupt, did not end and is left" in done.err
    if road != "a setup":
        last = home.log()[-1]
        assert (last["entry_type"], last["metadata"]["cause"]) == ("leg_ended", "interrupted")
        calls = [e["tool_call_id"] for e in home.log() if e["entry_type"] == "tool_call"]
        assert calls == [e["tool_call_id"] for e in home.log() if e["entry_type"] == "tool_result"]


@pytest.mark.sample(1)
@pytest.mark.parametrize("how", HOWS)
def test_a_teardown_that_does_not_end_ends(home: HomeDir, how: str) -> None:
    with server([Reply("fine")]) as model:
        placed(home, model.url, ROADS["a teardown"].format(how=how))
        with start("hello", home=home) as run:
            done = run.wait(30)
    assert (done.code, done.out) == (0, "fine\n") and "it took longer than 5 s and was ended" in done.err


@pytest.mark.sample(1)
@pytest.mark.parametrize("how", HOWS)
def test_a_setup_that_does_not_end_is_not_loaded(home: HomeDir, how: str) -> None:
    with server([Reply("fine")]) as model:
        placed(
            home,
            model.url,
            "on('message:received', lambda ctx, event: {'cancel': True})\n" + ROADS["a setup"].format(how=how),
        )
        (home.cru / "config.toml").write_text(
            (home.cru / "config.toml").read_text() + "\n[plugins]\nsetup_timeout = 0.5\n"
        )
        with start("hello", home=home) as run:
            done = run.wait(30)
    assert (done.code, done.out) == (0, "fine\n")
    assert "plugin deaf is not loaded" in done.err and "deaf.py: it was not ready after 0.5 s" in done.err


@pytest.mark.sample(1)
@pytest.mark.parametrize("how", HOWS)
def test_in_the_chat_one_ctrl_c_stops_the_answer(home: HomeDir, how: str) -> None:
    source = "on('message:received', lambda ctx, event: {how}() if event['content'] == 'a' else None)\n"
    with server([Reply("two")]) as model:
        placed(home, model.url, source.format(how=how))
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("a")
            terminal.expect("is busy")
            terminal.send("\x03")
            terminal.expect("> ")
            terminal.line("b")
            terminal.expect("two")
            assert terminal.eof() in (0, 130)


@pytest.mark.sample(1)
@pytest.mark.parametrize("how", HOWS)
def test_a_guard_that_is_not_done_in_time_does_not_pass(home: HomeDir, how: str) -> None:
    with server([Reply(calls=(Call("workflow", {"to": "b"}),)), Reply("stuck"), *[Reply("stuck")] * 5]) as model:
        placed(home, model.url, WORKFLOW.format(how=how))
        with start("/w go", home=home) as run:
            run.wait(30)
    said = next(e for e in home.log() if e["entry_type"] == "tool_result")["content"]
    assert "the check took longer than 1 s and was ended, so it did not pass" in said


def test_nor_does_one_that_blocks(home: HomeDir) -> None:
    source = WORKFLOW.replace("{how}()", "__import__('time').sleep(1.1) or True").format()
    with server([Reply(calls=(Call("workflow", {"to": "b"}),)), *[Reply("stuck")] * 6]) as model:
        placed(home, model.url, source)
        with start("/w go", home=home) as run:
            run.wait(30)
    said = next(e for e in home.log() if e["entry_type"] == "tool_result")["content"]
    assert "the check took longer than 1 s and was ended, so it did not pass" in said


@pytest.mark.sample(1)
@pytest.mark.parametrize("how", HOWS)
def test_nor_does_one_that_is_interrupted(home: HomeDir, how: str) -> None:
    with server([Reply(calls=(Call("workflow", {"to": "b"}),)), Reply("never")]) as model:
        placed(home, model.url, WORKFLOW.replace("'timeout': 1", "'timeout': 30").format(how=how))
        ended(home, signal.SIGINT, "/w go")
    assert '"state":"a"' in (home.context() / "plugin-state.json").read_text().replace(" ", "")


def test_a_guard_may_not_move_its_workflow(home: HomeDir) -> None:
    source = (
        "async def exit(ctx):\n    return (await fsm.to('w', 'b'))[0]\n"
        "fsm.define({'name': 'w', 'initial': 'a', 'states': {'a': {'to': ['b'], 'exit': exit}, 'b': {'final': True}}})\n"
    )
    with server([Reply(calls=(Call("workflow", {"to": "b"}),)), *[Reply("stuck")] * 6]) as model:
        placed(home, model.url, source)
        with start("/w go", home=home) as run:
            run.wait(30)
    said = next(e for e in home.log() if e["entry_type"] == "tool_result")["content"]
    assert "a guard may not move the workflow" in said and "RecursionError" not in said


AFTER = """
async def after(ctx, event):
    here('after')
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        pass
    for what in (
        lambda: cru.tools.call('write', {'file_path': 'made', 'content': 'x'}),
        lambda: cru.shell.exec('touch', ['made']),
    ):
        try:
            await what()
        except asyncio.CancelledError:
            here('refused')
on('message:received', after)
async def raw():
    await asyncio.sleep(0.3)
    here('raw')
    await cru.tools.call('write', {'file_path': 'made', 'content': 'x'})
on('message:received', lambda ctx, event: asyncio.create_task(raw()) and None, priority=1)
"""


def test_nothing_new_begins_after_an_interrupt(home: HomeDir) -> None:
    with server([Reply("never")]) as model:
        placed(home, model.url, AFTER)
        with start("hello", home=home) as run:
            run.wait_for("is busy")
            run.interrupt()
            done = run.wait(30)
        assert done.code == 130 and not model.requests
    assert not (home.project / "made").exists()


def test_a_handler_cannot_stop_the_loop(home: HomeDir) -> None:
    stops = "asyncio.get_running_loop()"
    source = (
        f"on('message:received', lambda ctx, event: {stops}.stop())\n"
        f"on('turn:complete', lambda ctx, event: {stops}.call_soon({stops}.stop) and None)\n"
        "on('session:ended', lambda ctx, event: asyncio.sleep(0.05))\n"
    )
    with server([Reply("fine")]) as model:
        placed(home, model.url, source)
        with start("hello", home=home) as run:
            done = run.wait(30)
    assert (done.code, done.out) == (0, "fine\n") and "Traceback" not in done.err
    assert "deaf.py:27): failed on message:received: " in done.err and done.err.count("the event loop is cru's") == 2
