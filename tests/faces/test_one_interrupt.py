"""One Ctrl-C on a terminal ends the run, whatever it is that takes long (docs/turn.md says in which time)."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
from tests.kit import Call, Hang, HomeDir, Reply, pty, server
from tests.kit.pty import Terminal
from tests.kit.waiting import wait_until

PYTHON = "import asyncio, time, cru\nfrom cru import on\ndef begin():\n    open('begun', 'w').write('x')\n"
HANDLER = PYTHON + "@on('message:received')\n"
LUA = "local function begin() cru.fs.write('begun', 'x') end\n"
LUA_HANDLER = LUA + "cru.on('message:received', function() begin() {} end)\n"
PLUGINS = {
    "a program": ("x.py", HANDLER + "async def f(c, e):\n    begin()\n    await cru.shell.exec('sleep', ['60'])\n"),
    "a request": ("x.py", HANDLER + "async def f(c, e):\n    begin()\n    await cru.http.get('{silent}')\n"),
    "a TLS handshake": ("x.py", HANDLER + "async def f(c, e):\n    begin()\n    await cru.http.get('{tls}')\n"),
    "a coroutine": ("x.py", HANDLER + "async def f(c, e):\n    begin()\n    await asyncio.sleep(60)\n"),
    "a setup": ("x.py", PYTHON + "async def setup(cru):\n    begin()\n    await asyncio.sleep(60)\n"),
    "a farewell": (
        "x.py",
        PYTHON + "async def teardown(cru):\n    begin()\n    await cru.shell.exec('sleep', ['60'])\n",
    ),
    "Lua that computes": ("x.lua", LUA_HANDLER.format("while true do end")),
    "Lua that sleeps": ("x.lua", LUA_HANDLER.format("cru.timer.sleep(60)")),
    "a command of Lua": ("x.lua", LUA_HANDLER.format("os.execute('sleep 60')")),
    "a pipe of Lua": ("x.lua", LUA_HANDLER.format("io.popen('sleep 60'):read('a')")),
    "a retry": ("x.lua", LUA_HANDLER.format("cru.retry(function() error('x') end, {max_retries=100})")),
    "a filter": ("x.lua", LUA_HANDLER.format("cru.oq.query({1}, '[range(100000000)]|length')")),
}
BLOCKING = {
    "a handler": ("x.py", HANDLER + "def f(c, e):\n    begin()\n    time.sleep(60)\n"),
    "a loop": ("x.py", HANDLER + "def f(c, e):\n    begin()\n    while True:\n        pass\n"),
    "a plugin that is loaded": ("x.py", PYTHON + "begin()\ntime.sleep(60)\n"),
}


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a server that accepts and says nothing."""
    accepted: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            try:
                while True:
                    accepted.append(listening.accept()[0])
            except OSError:
                return  # it is closed

        thread = threading.Thread(target=accept)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()
    for connection in accepted:
        connection.close()


def place(home: HomeDir, name: str, source: str) -> None:
    (home.cru / "plugins").mkdir(parents=True)
    (home.cru / "plugins" / name).write_text(source)


def wait_for_begin(home: HomeDir, terminal: Terminal) -> None:
    def has_begun() -> bool:
        terminal.screen()  # what is printed has to be read, else the program waits for room in the terminal
        return (home.project / "begun").exists()

    wait_until(has_begun)


def interrupted(home: HomeDir, terminal: Terminal) -> None:
    terminal.key("c-c")
    assert terminal.wait() == 130
    assert "Traceback" not in terminal.text and "never retrieved" not in terminal.text


@pytest.mark.sample(4)
@pytest.mark.parametrize("road", PLUGINS)
def test_what_a_plugin_waits_for(home: HomeDir, silent: int, road: str) -> None:
    name, source = PLUGINS[road]
    urls = {"{silent}": f"http://127.0.0.1:{silent}/", "{tls}": f"https://127.0.0.1:{silent}/"}
    for mark, url in urls.items():
        source = source.replace(mark, url)
    place(home, name, source)
    with server([Reply("fine") if road == "a farewell" else Hang("so far")]) as model:
        home.configure(url=model.url)
        with pty("hi", home=home) as terminal:
            wait_for_begin(home, terminal)
            interrupted(home, terminal)
    assert "did not come back" not in terminal.text
    if road != "a setup":
        last = home.log()[-1]
        assert (last["entry_type"], last["metadata"]["cause"]) == (
            "leg_ended", "done" if road == "a farewell" else "interrupted"
        )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("road", BLOCKING)
def test_python_that_blocks_ends_with_the_process(home: HomeDir, road: str) -> None:
    place(home, *BLOCKING[road])
    with server([Hang("so far")]) as model:
        home.configure(url=model.url)
        with pty("hi", home=home) as terminal:
            wait_for_begin(home, terminal)
            interrupted(home, terminal)
    assert "did not come back" in terminal.text


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_model_server_that_says_nothing(home: HomeDir, silent: int, scheme: str) -> None:
    home.configure(url=f"{scheme}://127.0.0.1:{silent}/v1")
    with pty("hi", home=home) as terminal:
        terminal.expect("waiting for the model")
        interrupted(home, terminal)
    assert home.log()[-1]["metadata"]["cause"] == "interrupted"


def test_a_hook_that_hears_nothing(home: HomeDir) -> None:
    command = "trap '' TERM INT HUP; touch begun; while :; do sleep 60; done"
    with server([Hang("so far")]) as model:
        home.configure(f'[[hooks.entries]]\nevent = "message:received"\ncommand = "{command}"\n', url=model.url)
        with pty("--hooks", "all", "hi", home=home) as terminal:
            wait_for_begin(home, terminal)
            interrupted(home, terminal)
    assert home.log()[-1]["metadata"]["cause"] == "interrupted"


def test_a_search_in_everything(home: HomeDir) -> None:
    plugin = LUA + "cru.on('tool:called', function() begin() end)\n"
    place(home, "x.lua", plugin)
    with server([Reply(calls=[Call("glob", {"pattern": "**/*.nothing*", "path": "/"})])]) as model:
        home.configure(url=model.url)
        with pty("-t", "hi", home=home) as terminal:
            wait_for_begin(home, terminal)
            interrupted(home, terminal)
    assert home.log()[-1]["metadata"]["cause"] == "interrupted"
