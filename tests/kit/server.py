"""A model server on a free port of 127.0.0.1: real sockets in a thread, so that it can do what real servers do to a client.

    with server([Status(429, {"retry-after": "0"}), Reply("hi", split=1), Hang("so far")]) as model:
        ...  # model.url, model.requests, model.wait(2), model.closed

Any request takes one step, except GET …/models, which is always answered. The path decides the language of a Reply: …/messages is
Anthropic's, the rest is OpenAI's. When the script has run out, the answer is a 500 that says so.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from tests.kit.connection import MODELS, Connection
from tests.kit.steps import Received, Reply, Rule, Script, Status, Step
from tests.kit.waiting import PATIENCE

T = TypeVar("T")


class Server:
    """What a test sees of the server. `requests` are those that took a step; `closed` holds the numbers (from 0) of the requests
    whose client went away before the answer was whole; `problems` what the script raised, and requests that are no HTTP.
    `models`: the list; `key`: who has it not gets none."""

    def __init__(self, script: Script) -> None:
        self.requests: list[Received] = []
        self.closed: list[int] = []
        self.problems: list[Exception] = []
        self._connections: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}
        self.port = 0
        self.key = ""
        self.models = MODELS
        self._script = script
        self._news = threading.Condition()

    @property
    def url(self) -> str:
        """The base URL, …/v1."""
        return f"http://127.0.0.1:{self.port}/v1"

    def wait(self, requests: int = 1, timeout: float = PATIENCE) -> list[Received]:
        """Wait until that many requests have arrived. TimeoutError says how many did."""
        return self._until(lambda: len(self.requests) >= requests, self.requests, f"{requests} requests", timeout)

    def wait_closed(self, clients: int = 1, timeout: float = PATIENCE) -> list[int]:
        """Wait until that many clients have gone away in mid-answer."""
        return self._until(lambda: len(self.closed) >= clients, self.closed, f"{clients} lost clients", timeout)

    def _until(self, ready: Callable[[], bool], seen: list[T], what: str, timeout: float) -> list[T]:
        with self._news:
            if not self._news.wait_for(ready, timeout):
                raise TimeoutError(f"waited {timeout} s for {what}, saw {len(seen)}")
            return seen

    def take(self, request: Received) -> tuple[int, Step]:
        """The number of this request and the step that answers it (called by a connection)."""
        with self._news:
            self.requests.append(request)
            number = len(self.requests) - 1
            self._news.notify_all()
        try:
            return number, self._step(number, request)
        except Exception as error:  # noqa: BLE001  a boundary: the test hears of it when the server closes
            self.failed(error)
            return number, Status(500, {"retry-after": "0"}, f"the script's function failed: {error!r}")

    def _step(self, number: int, request: Received) -> Step:
        entry: Step | Rule
        if callable(self._script):
            entry = self._script
        elif number < len(self._script):
            entry = self._script[number]
        else:
            text = f"the script has {len(self._script)} steps, this is request {number + 1}: {request.method} {request.path}"
            entry = Status(500, {"retry-after": "0"}, text)
        return entry(request) if callable(entry) else entry

    def lost(self, number: int) -> None:
        """The client of that request is gone (called by a connection)."""
        with self._news:
            self.closed.append(number)
            self._news.notify_all()

    @property
    def is_idle(self) -> bool:
        """Whether no connection is open."""
        return all(task.done() for task in list(self._connections.values()))

    def failed(self, error: Exception) -> None:
        """The script or a request is wrong."""
        self.problems.append(error)

    async def serve(self, ready: Callable[[Callable[[], object]], None]) -> None:
        """Serve until stopped; `ready` is given a function, good for any thread, that stops it."""
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        connections = self._connections

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connections[writer] = loop.create_task(Connection(reader, writer, self).run())

        listening = await asyncio.start_server(connected, "127.0.0.1", 0, limit=1 << 26)
        self.port = listening.sockets[0].getsockname()[1]
        ready(partial(loop.call_soon_threadsafe, stop.set))
        await stop.wait()
        await stop_accepting(listening)
        for task in connections.values():
            task.cancel()
        await asyncio.gather(*connections.values(), return_exceptions=True)
        for writer in connections:  # the task of one that has just come has closed nothing
            writer.transport.abort()
        await asyncio.sleep(0)


PASSES = 5
"""Of the loop, in which whoever has connected is let in."""


async def stop_accepting(listening: asyncio.Server) -> None:
    """Close it once nobody is being let in: asyncio forgets the socket of one that comes too late."""
    loop = asyncio.get_running_loop()
    for socket in listening.sockets:
        loop.remove_reader(socket.fileno())
    for _ in range(PASSES):
        await asyncio.sleep(0)
    listening.close()


@contextmanager
def server(script: Script = ()) -> Iterator[Server]:
    """Serve a script. On leaving, the first of its `problems` is raised, so that it fails the test."""
    model = Server(script)
    ready = threading.Event()
    stops: list[Callable[[], object]] = []

    def started(stop: Callable[[], object]) -> None:
        stops.append(stop)
        ready.set()

    thread = threading.Thread(target=lambda: asyncio.run(model.serve(started)), name="model server", daemon=True)
    thread.start()
    if not ready.wait(PATIENCE):
        raise RuntimeError("the model server did not start")
    try:
        yield model
    finally:
        stops[0]()
        thread.join(PATIENCE)
    if model.problems:
        raise model.problems[0]


def text(content: str) -> Rule:
    """A script for any number of requests: the same text each time."""
    return lambda request: Reply(content)
