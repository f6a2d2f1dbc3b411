"""Python can do more than Lua: end the program, cancel tasks, block the loop. It stays the plugin's failure, and Ctrl-C stays Ctrl-C."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.kit import Call, Hang, HomeDir, Reply, Started, cru, pty, server, start
from tests.programs.test_bad_plugins import run, told

HANDLER = "import asyncio, sys, time\nfrom cru import on\n@on('message:received')\n"
ENDING = ("KeyboardInterrupt", "SystemExit")
LOOKED_AT = ("__bool__", "__len__", "__iter__", "get")


@pytest.mark.sample(5)
@pytest.mark.parametrize("raised", [*ENDING, "GeneratorExit", "asyncio.CancelledError"])
@pytest.mark.parametrize("method", LOOKED_AT)
def test_an_object_that_raises_when_it_is_looked_at_is_its_plugins_failure(
    tmp_path: Path, raised: str, method: str
) -> None:
    rude = f"import asyncio\ndef rude(*_):\n    raise {raised}\nclass Rude(dict):\n    {method} = rude\n"
    source = rude + "from cru import on\non('message:received', lambda ctx, event: Rude(content='x'))\n"
    assert f"bad.py:7): failed on message:received: {raised.removeprefix('asyncio.')}" in told(
        tmp_path, {"bad.py": source}
    )


@pytest.mark.parametrize("raised", [*ENDING, "ValueError('x')"])
def test_a_tools_result_that_cannot_be_read_is_a_failed_call(tmp_path: Path, raised: str) -> None:
    source = (
        f"class Rude(dict):\n    def get(self, *_):\n        raise {raised}\n"
        "TOOLS = {'mend': {'desc': 'x', 'fn': lambda args: Rude(a=1)}}"
    )
    _, _, requests = run(tmp_path, {"bad.py": source}, Reply(calls=(Call("mend"),)), Reply("all is well"))
    said = requests[1].body["messages"][-1]["content"]
    assert "what it returned cannot be read: " in said and raised.partition("(")[0] in said


def test_an_error_without_a_text_is_told_all_the_same(tmp_path: Path) -> None:
    source = (
        "class Mute(Exception):\n    def __str__(self):\n        raise KeyboardInterrupt\n" + HANDLER
    ) + "def f(ctx, event):\n    raise Mute\n"
    assert "bad.py:8: Mute, whose text cannot be made (KeyboardInterrupt)" in told(tmp_path, {"bad.py": source})


@pytest.mark.parametrize("raised", [*ENDING, "ValueError('x')"])
def test_what_a_task_of_its_own_raises_is_told_with_its_place_and_the_run_goes_on(tmp_path: Path, raised: str) -> None:
    source = HANDLER + (
        "async def f(ctx, event):\n    asyncio.create_task(own())\n    await asyncio.sleep(0.01)\n"
        f"async def own():\n    raise {raised}\n"
    )
    err = told(tmp_path, {"bad.py": source})
    assert f"bad.py:8): a task of its own failed: {raised.partition('(')[0]}" in err
    assert "Traceback" not in err and "never retrieved" not in err and err.count("a task of its own") == 1


def test_an_exit_that_the_loop_calls_ends_nothing(tmp_path: Path) -> None:
    source = HANDLER + (
        "async def f(ctx, event):\n    asyncio.get_running_loop().call_soon(sys.exit, 4)\n    await asyncio.sleep(0.01)\n"
    )
    assert "a plugin: a task of its own failed: SystemExit: 4" in told(tmp_path, {"bad.py": source})


def test_an_exit_of_a_task_leaves_the_chat_open(home: HomeDir) -> None:
    (home.cru / "plugins").mkdir(parents=True)
    (home.cru / "plugins" / "bad.py").write_text(
        HANDLER + "async def f(ctx, event):\n    asyncio.create_task(own())\nasync def own():\n"
        "    await asyncio.sleep(0.3)\n    sys.exit(3)\n"
    )
    with server([Reply("one"), Reply("two")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("a")
            terminal.expect("a task of its own failed: SystemExit: 3")
            terminal.line("b")
            terminal.expect("two")
            assert terminal.eof() == 0


CANCELLING = {
    "in an async handler": "async def f(ctx, event):\n    asyncio.current_task().cancel()\n",
    "and waits": "async def f(ctx, event):\n    asyncio.current_task().cancel()\n    await asyncio.sleep(5)\n",
    "and raises it": "async def f(ctx, event):\n    asyncio.current_task().cancel()\n    raise asyncio.CancelledError\n",
    "after a wait": "async def f(ctx, event):\n    await asyncio.sleep(0.01)\n    asyncio.current_task().cancel()\n",
    "later, and from elsewhere": "async def f(ctx, event):\n    task = asyncio.current_task()\n"
    "    asyncio.get_running_loop().call_later(0.01, task.cancel)\n    await asyncio.sleep(20)\n",
    "in a plain handler": "def f(ctx, event):\n    asyncio.current_task().cancel()\n",
    "plainly, and raises": "def f(ctx, event):\n    asyncio.current_task().cancel()\n    raise ValueError\n",
}


@pytest.mark.parametrize("how", CANCELLING)
def test_cancelling_the_task_it_runs_in_is_the_plugins_failure(tmp_path: Path, how: str) -> None:
    err = told(tmp_path, {"bad.py": HANDLER + CANCELLING[how]})
    assert "failed on message:received: " in err and "it cancelled the task that cru runs it in" in err
    assert "bad.py:" in err and "interrupted" not in err


def test_a_cancel_of_crus_own_task_interrupts_and_is_told(tmp_path: Path) -> None:
    late = "asyncio.get_running_loop().call_later(0.05, asyncio.current_task().cancel)"
    with server((Hang("so far"),)) as model:
        here = HomeDir(tmp_path / "home", tmp_path / "project")
        (here.cru / "plugins").mkdir(parents=True)
        here.project.mkdir()
        here.configure("", model.url)
        (here.cru / "plugins" / "bad.py").write_text(HANDLER + f"def f(ctx, event):\n    {late}\n")
        done = cru("hello", home=here)
    assert done.code == 130 and "nobody interrupted this: code of a plugin cancelled a task of cru" in done.err


@pytest.mark.parametrize("body", ["await asyncio.sleep(20)", "await asyncio.wait_for(asyncio.sleep(20), 20)"])
def test_a_real_ctrl_c_ends_a_waiting_handler_and_nobody_is_blamed(home: HomeDir, body: str) -> None:
    (home.cru / "plugins").mkdir(parents=True)
    (home.cru / "plugins" / "slow.py").write_text(
        HANDLER + f"async def f(ctx, event):\n    print('waiting', file=sys.stderr, flush=True)\n    {body}\n"
    )
    with server((Reply("never"),)) as model:
        home.configure("", model.url)
        running: Started
        with start("hello", home=home) as running:
            running.wait_for("waiting")
            running.interrupt()
            done = running.wait()
    assert done.code == 130 and "slow" not in done.err and "nobody" not in done.err


def test_what_it_waits_for_may_time_out_and_be_cancelled(tmp_path: Path) -> None:
    """`asyncio.timeout` and task groups cancel the running task, and take it back: nobody else may."""
    body = (
        "async def f(ctx, event):\n    try:\n        async with asyncio.timeout(0.01):\n            await asyncio.sleep(5)\n"
        "    except TimeoutError:\n        pass\n"
        "    try:\n        async with asyncio.TaskGroup() as group:\n            group.create_task(fails())\n"
        "            await asyncio.sleep(5)\n    except ExceptionGroup:\n        pass\n"
        "    return {'content': 'waited'}\nasync def fails():\n    raise ValueError\n"
    )
    with server((Reply("all is well"),)) as model:
        here = HomeDir(tmp_path / "home", tmp_path / "project")
        (here.cru / "plugins").mkdir(parents=True)
        here.project.mkdir()
        here.configure("", model.url)
        (here.cru / "plugins" / "good.py").write_text(HANDLER + body)
        done = cru("hello", home=here)
    assert (done.code, done.out, done.err) == (0, "all is well\n", "")
    assert model.requests[0].body["messages"][-1]["content"] == "waited"


def test_a_call_that_blocks_in_an_async_handler_is_named_once(tmp_path: Path) -> None:
    err = told(
        tmp_path, {"bad.py": HANDLER + "async def f(ctx, event):\n    await asyncio.sleep(0)\n    time.sleep(0.3)\n"}
    )
    assert "bad (" in err and "bad.py:3): worked 3" in err and "ms without a pause, and everything else waited" in err
    assert err.count("everything else waited") == 1


def test_the_fields_of_an_event_are_attributes_too(tmp_path: Path) -> None:
    body = "def f(ctx, event):\n    assert event.content == event.payload.content == 'hello'\n    event.contnt\n"
    err = told(tmp_path, {"bad.py": HANDLER + body})
    assert "bad.py:6: AttributeError: there is no `contnt` here; did you mean `content`?" in err


LATE = {
    "a thread of its own failed: ZeroDivisionError: division by zero": (
        "import threading\n", "    thread = threading.Thread(target=lambda: 1 / 0)\n    thread.start()\n    thread.join()\n",
    ),
    "what it left was cleared away and failed: ZeroDivisionError: division by zero": (
        "class Left:\n    def __del__(self):\n        1 / 0\n", "    Left()\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", LATE)
def test_what_fails_in_a_thread_or_a_finalizer_is_told_in_a_line(tmp_path: Path, text: str) -> None:
    head, body = LATE[text]
    source = head + HANDLER + "async def f(ctx, event):\n" + body + "    await asyncio.sleep(0.01)\n"
    err = told(tmp_path, {"bad.py": source})
    assert "bad (" in err and f"): {text}" in err and "Traceback" not in err and "Exception" not in err, err


@pytest.mark.parametrize("does", ["sys.stdout = None", "sys.stdout.close()"])
def test_a_plugin_that_takes_a_stream_away_takes_its_own(tmp_path: Path, does: str) -> None:
    done, _, _ = run(tmp_path, {"bad.py": HANDLER + f"def f(ctx, event):\n    {does}\n"})
    assert done.code == 0 and "all is well" in done.out and "Traceback" not in done.err


def test_a_plugin_that_closes_what_is_not_its_own_gets_no_traceback(home: HomeDir) -> None:
    (home.cru / "plugins").mkdir(parents=True)
    source = HANDLER + "def f(ctx, event):\n    import os\n    os.closerange(3, 64)\n"
    (home.cru / "plugins" / "bad.py").write_text(source)
    with server([Reply("fine")]) as model:
        home.configure(url=model.url)
        done = cru("hello", home=home)
    assert done.code == 1 and done.err.startswith("cru: ") and "Traceback" not in done.err


TAKEN = {
    "sys.modules.clear()": "modules out of sys.modules",
    "del sys.modules['asyncio'], sys.modules['msgspec']": "2 modules out of sys.modules",
    "sys.excepthook = None": "it took sys.excepthook away",
    "import threading; threading.excepthook = None": "it took threading.excepthook away",
}
PLACES = {
    "its module": "import sys\n{}\n",
    "a handler": "import sys\nfrom cru import on\n@on('turn:complete')\ndef f(ctx, event):\n    {}\n",
    "an async handler": "import sys\nfrom cru import on\n@on('turn:complete')\nasync def f(ctx, event):\n    {}\n",
    "setup": "import sys\ndef setup(cru):\n    {}\n",
    "what fails": "import sys\n{}\n1 / 0\n",
}


@pytest.mark.sample(1)
@pytest.mark.real_start
@pytest.mark.parametrize("does", TAKEN)
def test_what_it_takes_away_from_the_process_is_put_back_and_told(tmp_path: Path, does: str) -> None:
    plugins = {f"{place.split()[-1]}{at}.py": text.format(does) for at, (place, text) in enumerate(PLACES.items())}
    err = told(tmp_path, plugins)
    assert "Traceback" not in err
    for name in plugins:
        wanted = "ZeroDivisionError" if name.startswith("fails") else TAKEN[does]
        assert any(name in line and wanted in line for line in err.splitlines()), (name, err)


def test_a_module_of_its_own_may_go(tmp_path: Path) -> None:
    source = (
        "import sys, types\nsys.modules['own'] = types.ModuleType('own')\nfrom cru import on\n"
        "on('turn:complete', lambda ctx, event: sys.modules.pop('own', None) and None)\n"
    )
    assert "sys.modules" not in told(tmp_path, {"fine.py": source})
