"""`[sandbox] hosts`: confined programs reach these, and nothing else, through the real command and a real proxy."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.core.guard.sandbox.conftest import Surroundings
from tests.core.guard.sandbox.host_requests import BAD_RULES, REFUSED
from tests.core.guard.sandbox.test_escapes import run
from tests.kit import HomeDir, cru
from tests.kit.growth import assert_linear
from tests.kit.sandbox import needs_sandbox

from cru.core.guard.sandbox.hosts import parse_rules
from cru.core.guard.sandbox.proxy import HostProxy
from cru.core.guard.sandbox.requests import read_request

LARGE = 8 << 20


class Handler(BaseHTTPRequestHandler):
    """Answers with what it was sent."""

    protocol_version = "HTTP/1.1"
    seen: list[str]

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.seen.append(f"{self.command} {self.path} {self.headers['host']} {body.decode()}")  # type: ignore[attr-defined]
        answer = b"x" * LARGE if self.path == "/large" else f"hello {body.decode()}".encode()
        self.send_response(200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_POST = do_GET

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def web_server() -> Iterator[ThreadingHTTPServer]:
    """On an address of this machine that only its rule may name."""
    web = ThreadingHTTPServer(("127.0.0.2", 0), Handler)
    web.seen = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield web
    finally:
        web.shutdown()
        web.server_close()
        thread.join()


def resolve(host: str, port: int, *, type: int) -> list[tuple[object, ...]]:
    address = {"a.wild.example": "127.0.0.1", "known.example": "127.0.0.1", "inside.example": "127.0.0.2"}[host]
    return [(socket.AF_INET, type, 6, "", (address, port))]


async def exchange(path: str, data: bytes) -> bytes:
    """What the proxy says to these bytes, until it has no more to say."""
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(data)
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


@pytest.mark.parametrize("row", REFUSED)
def test_the_proxy_refuses(row: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def look_up(loop: object, host: str, port: int, **more: int) -> list[tuple[object, ...]]:
        return resolve(host, port, **more)

    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", look_up)
    sent, expected = REFUSED[row]

    async def play(port: int, named: int) -> bytes:
        rules = parse_rules([f"127.0.0.2:{named}", "known.example", "*.wild.example"])
        proxy = HostProxy(str(tmp_path), "p", rules)
        try:
            return await exchange(proxy.path, sent.replace(b"{port}", b"%d" % port).replace(b"{named}", b"%d" % named))
        finally:
            proxy.close()
            await proxy.finish()

    with socket.create_server(("127.0.0.1", 0)) as other, web_server() as web:
        port, named = other.getsockname()[1], web.server_address[1]
        answer = asyncio.run(play(port, named))
        other.setblocking(False)
        with pytest.raises(BlockingIOError):
            other.accept()
    assert answer.startswith(b"HTTP/1.1 " + expected.replace(b"{port}", b"%d" % port)), answer
    assert web.seen == []  # type: ignore[attr-defined]


@pytest.mark.slow
def test_blanks_in_a_header_are_read_in_one_go() -> None:
    def work(blanks: int) -> Callable[[], object]:
        head = b"GET http://known.example/ HTTP/1.1\r\nx: \t a" + b" " * blanks + b"b \t\r\ny:"
        return lambda: heads.append(read_request(head).head)

    heads: list[bytes] = []
    assert_linear(work, 60_000)
    assert heads[-1].endswith(b"x: a" + b" " * 60_000 + b"b\r\ny: \r\n\r\n")


def test_hosts_that_are_refused_are_told_up_to_a_number(tmp_path: Path) -> None:
    async def play() -> str:
        proxy = HostProxy(str(tmp_path), "p", parse_rules(["known.example"]))
        try:
            for number in [*range(50), *range(5)]:
                await exchange(proxy.path, b"CONNECT x%d.example:443 HTTP/1.1\r\n\r\n" % number)
            return proxy.describe_refused()
        finally:
            proxy.close()
            await proxy.finish()

    text = asyncio.run(play())
    assert text.count(".example is not among") == 20 and text.endswith("; and 30 more")


def test_only_one_request_goes_through_a_connection(tmp_path: Path) -> None:
    """What follows the body of a request is not passed on: nobody has judged it."""

    async def play(named: int) -> bytes:
        proxy = HostProxy(str(tmp_path), "p", parse_rules([f"127.0.0.2:{named}"]))
        try:
            head = (
                b"POST http://127.0.0.2:%d/a?b HTTP/1.1\r\nhost: evil\r\nproxy-authorization: x\r\ncontent-length: 2\r\n\r\n"
                % named
            )
            return await exchange(proxy.path, head + b"hiGET /second HTTP/1.1\r\nhost: evil\r\n\r\n")
        finally:
            proxy.close()
            await proxy.finish()

    with web_server() as web:
        named = web.server_address[1]
        answer = asyncio.run(play(named))
    assert answer.endswith(b"\r\n\r\nhello hi")
    assert web.seen == [f"POST /a?b 127.0.0.2:{named} hi"]  # type: ignore[attr-defined]


@pytest.mark.slow
@needs_sandbox
def test_confined_programs_reach_the_hosts_of_the_setting_and_no_other(surroundings: Surroundings) -> None:
    with web_server() as web:
        named = web.server_address[1]
        get = "import urllib.request as u; print(len(u.urlopen(u.Request(%r, %s)).read()))"
        commands = [
            f"curl -sS http://127.0.0.2:{named}/",
            f"curl -sS --proxytunnel http://127.0.0.2:{named}/",
            f"curl -sS -d data http://127.0.0.2:{named}/post",
            f"curl -sS http://127.0.0.2:{named}/large | wc -c",
            f'unset no_proxy NO_PROXY; python3 -c "{get % (f"http://127.0.0.2:{named}/", None)}"',
            "curl -sS https://evil.example/",
            "curl -sS http://127.0.0.1:{port}/",
            "exec 3<>/dev/tcp/127.0.0.1/{port} && echo x >&3",
            f"python3 -c \"import socket; socket.create_connection(('127.0.0.2', {named}), 2)\"",
            "rm -f /run/cru-proxy.sock; ls /run; yes | head -1; echo $HTTPS_PROXY",
        ]
        results = run(surroundings, commands, config=f"[sandbox]\nmode = 'on'\nhosts = ['127.0.0.2:{named}']\n")
    assert results[:5] == ["hello ", "hello ", "hello data", str(LARGE), "6"]
    assert "evil.example is not among `hosts` in [sandbox]" in results[5]
    assert "no network but 127.0.0.2" in results[7] and "Connection refused" in results[8]
    assert "http://127.0.0.1:31280" in results[9] and "\ny\n" in results[9]
    assert not surroundings.was_reached()
    assert list(surroundings.temporary.iterdir()) == []


@needs_sandbox
def test_a_port_of_this_machine_that_a_rule_writes_out_is_reached(surroundings: Surroundings) -> None:
    """Through HTTP as programs do it, and as a socket; what is started inside is reached as well."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as web:
        web.seen = []  # type: ignore[attr-defined]
        thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        port = web.server_address[1]
        speak = (
            "import socket; s = socket.create_connection(('localhost', %d), 5); "
            "s.sendall(b'GET /a HTTP/1.0\\r\\n\\r\\n'); print(s.recv(99))"
        )
        inside = "python3 -m http.server 8799 --bind 127.0.0.1 >/dev/null 2>&1 & "
        inside += "until curl -sf localhost:8799/ >/dev/null; do sleep 0.02; done"
        commands = [
            f"curl -sS http://localhost:{port}/",
            f'python3 -c "{speak % port}"',
            f"curl -sS http://127.0.0.1:{port}/",
            f"{inside}; echo inside",
            "curl -sS http://127.0.0.1:{port}/",
        ]
        try:
            results = run(surroundings, commands, config=f"[sandbox]\nmode = 'on'\nhosts = ['localhost:{port}']\n")
        finally:
            web.shutdown()
            thread.join()
    assert results[0] == results[2] == "hello " and "200 OK" in results[1] and results[3] == "inside"
    assert "Connection refused" in results[4] or "connect to server" in results[4]
    assert not surroundings.was_reached()


HINTS = {
    "curl -s -o page http://refused.example; cat page": "refused.example is not among",
    "curl -s http://refused.example | tail -1": "refused.example is not among",
    "curl -s http://refused.example || true": "refused.example is not among",
    "cat ~/.netrc || true": "this ran in a sandbox",
    "echo x > {out}/new || true": "this ran in a sandbox",
    "curl --noproxy '*' -s http://192.0.2.1/": "this ran in a sandbox",
    "git -C {out} init -q x; true": "this ran in a sandbox",
    "echo 'nothing: Permission denied, says the book'": "",
    "echo fine": "",
}


@needs_sandbox
def test_what_the_sandbox_refused_is_told_whatever_the_exit_status(surroundings: Surroundings) -> None:
    results = run(surroundings, list(HINTS), config="[sandbox]\nmode = 'on'\nhosts = ['pypi.org']\n")
    told = {command: result for command, result in zip(HINTS, results, strict=True)}
    assert [command for command, hint in HINTS.items() if hint not in told[command]] == [], told
    assert [command for command, hint in HINTS.items() if not hint and "sandbox" in told[command]] == []


@pytest.mark.parametrize("rule", BAD_RULES)
def test_a_rule_that_cannot_be_meant_is_told(home: HomeDir, rule: str) -> None:
    home.configure(f"[sandbox]\nhosts = [{rule!r}]\n")
    done = cru("config", home=home)
    assert done.code != 0 and BAD_RULES[rule] in done.err and "Traceback" not in done.err


def test_what_has_no_end_waits_in_the_kernel_and_not_in_memory(tmp_path: Path) -> None:
    """A server that reads nothing, and a client that sends without end, in a tunnel and in a body."""

    async def send_all(path: str, head: bytes) -> int:
        _, writer = await asyncio.open_unix_connection(path)
        writer.transport.set_write_buffer_limits(1)
        writer.write(head)
        sent = 0
        try:
            while sent < 1 << 30:
                writer.write(b"x" * 65536)
                async with asyncio.timeout(0.5):
                    await writer.drain()
                sent += 65536
        except TimeoutError:
            pass
        writer.transport.abort()
        return sent

    async def play(named: int) -> list[int]:
        proxy = HostProxy(str(tmp_path), "p", parse_rules([f"127.0.0.2:{named}"]))
        where = f"127.0.0.2:{named}".encode()
        heads = [b"CONNECT %s HTTP/1.1\r\n\r\n" % where]
        heads += [b"POST http://%s/ HTTP/1.1\r\ncontent-length: 999999999999\r\n\r\n" % where]
        try:
            return await asyncio.gather(*(send_all(proxy.path, head) for head in heads))
        finally:
            proxy.close()
            await proxy.finish()

    with socket.create_server(("127.0.0.2", 0)) as deaf:
        sent = asyncio.run(play(deaf.getsockname()[1]))
    assert all(0 < size < 64 << 20 for size in sent), sent


def test_a_client_that_says_nothing_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cru.core.guard.sandbox.proxy.HEAD_SECONDS", 0.05)

    async def play() -> tuple[bytes, bytes, bytes]:
        proxy = HostProxy(str(tmp_path), "p", parse_rules(["known.example"]))
        try:
            return await asyncio.gather(
                exchange(proxy.path, b"GET"), exchange(proxy.path, b"GET"), exchange(proxy.path, b"\r\n\r\n")
            )
        finally:
            proxy.close()
            await proxy.finish()

    silent, other, answered = asyncio.run(play())
    assert (silent, other) == (b"", b"") and answered.startswith(b"HTTP/1.1 400")
