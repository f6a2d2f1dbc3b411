"""The HTTP library behind the port: everything that is not plain HTTP to this machine."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
from tests.core.models.wire import Peer, Step, Wire, broken_stream, hang, open_stream, serve, status, stream
from tests.kit.waiting import PATIENCE

from cru.core.base.net import CertificateUntrusted, ConnectFailed, ConnectionLost, TimedOut, TimeLimits
from cru.core.base.net.remote import proxy_for
from cru.core.base.net.transport import Transport


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that nobody trusts, with its key in the same file."""
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    names = "subjectAltName=IP:127.0.0.1"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    command += ["-subj", "/CN=test", "-addext", names, "-addext", "basicConstraints=critical,CA:FALSE"]
    try:
        done = subprocess.run([*command, "-keyout", "-", "-out", "-"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no certificate can be made here: {error}")
    file.write_bytes(done.stdout)
    return file


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@pytest.fixture
def trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))


async def post(transport: Transport, url: str) -> tuple[int, bytes]:
    response = await transport.post_stream(url, {"authorization": "Bearer secret"}, (b"{}",))
    try:
        return response.status, await response.read(1 << 20)
    finally:
        await response.close()


def test_a_certificate_that_nobody_trusts_is_refused(tls: ssl.SSLContext) -> None:
    async def main() -> None:
        async with serve(status(200, "a"), tls=tls) as wire:
            with pytest.raises(CertificateUntrusted, match="certificate") as caught:
                await post(Transport(), wire.url)
            assert "SSL_CERT_FILE" in caught.value.hint
            assert "secret" not in str(caught.value)

    asyncio.run(main())


@pytest.mark.usefixtures("trusted")
def test_ssl_cert_file_makes_it_trusted_and_connections_are_kept(tls: ssl.SSLContext) -> None:
    async def main() -> None:
        transport = Transport()
        async with serve(status(429, "slow", "Retry-After: 3\r\n"), stream(b"b"), tls=tls) as wire:
            response = await transport.post_stream(wire.url, {}, (b"{}",))
            assert (response.status, response.headers["retry-after"]) == (429, "3")
            assert await response.read(10) == b"slow"
            await response.close()
            await response.close()
            assert await post(transport, wire.url) == (200, b"b")
            assert wire.connections == 1
            await transport.close()

    asyncio.run(main())


@pytest.mark.usefixtures("trusted")
def test_chunks_come_when_they_are_sent(tls: ssl.SSLContext) -> None:
    async def main() -> None:
        async with serve(open_stream(b"first"), tls=tls) as wire:
            response = await Transport().post_stream(wire.url, {}, (b"{}",))
            async with asyncio.timeout(PATIENCE):
                assert await anext(response.chunks) == b"first"
            await response.close()
            async with asyncio.timeout(PATIENCE):
                await wire.requests[0].gone.wait()

    asyncio.run(main())


@pytest.mark.usefixtures("trusted")
def test_cancelling_in_the_middle_of_an_answer_closes_the_connection(tls: ssl.SSLContext) -> None:
    async def main() -> None:
        async with serve(open_stream(b"first"), tls=tls) as wire:
            task = asyncio.create_task(post(Transport(), wire.url))
            seen = await wire.until(1)
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            async with asyncio.timeout(PATIENCE):
                await seen.gone.wait()

    asyncio.run(main())


@pytest.mark.usefixtures("trusted")
def test_cancelling_before_the_answer_closes_the_connection_when_the_answer_begins(tls: ssl.SSLContext) -> None:
    """The library's limit (docs/decisions/network.md); a change for the better may delete this test."""
    begin = asyncio.Event()

    async def late(peer: Peer) -> None:
        await begin.wait()
        await peer.head(200, "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n")
        await peer.chunk(b"first")
        await peer.wait_for_close()

    async def main() -> None:
        async with serve(late, tls=tls) as wire:
            task = asyncio.create_task(post(Transport(), wire.url))
            seen = await wire.until(1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            begin.set()
            async with asyncio.timeout(PATIENCE):
                await seen.gone.wait()

    asyncio.run(main())


@pytest.mark.usefixtures("trusted")
def test_a_broken_answer_is_a_lost_connection(tls: ssl.SSLContext) -> None:
    async def main() -> None:
        async with serve(broken_stream(b"half"), tls=tls) as wire:
            with pytest.raises(ConnectionLost):
                await post(Transport(), wire.url)

    asyncio.run(main())


def test_a_name_that_does_not_exist_is_a_failed_connection() -> None:
    with pytest.raises(ConnectFailed):
        asyncio.run(post(Transport(), "http://no-such-host.invalid/v1"))


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy"])
def test_a_proxy_named_by_the_environment_is_used_but_not_for_this_machine(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> tuple[Wire, Wire]:
        async with serve(status(200, "from the proxy")) as proxy, serve(status(200, "direct")) as here:
            monkeypatch.setenv(variable, proxy.url.removesuffix("/v1"))
            transport = Transport()
            assert await post(transport, "http://models.example/v1/x") == (200, b"from the proxy")
            assert await post(transport, here.url) == (200, b"direct")
            await transport.close()
            return proxy, here

    proxy, _ = asyncio.run(main())
    assert proxy.requests[0].line == "POST http://models.example/v1/x HTTP/1.1"


def test_no_proxy_names_hosts_that_are_reached_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> int:
        async with serve(status(200, "from the proxy")) as proxy:
            monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
            monkeypatch.setenv("NO_PROXY", "models.invalid")
            with pytest.raises(ConnectFailed):
                await post(Transport(), "http://models.invalid/v1")
            return len(proxy.requests)

    assert asyncio.run(main()) == 0


def test_https_goes_through_a_tunnel_of_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> str:
        async with serve(status(403, "no tunnel")) as proxy:
            monkeypatch.setenv("HTTPS_PROXY", proxy.url.removesuffix("/v1"))
            with pytest.raises(ConnectFailed):
                await post(Transport(), "https://models.example/v1")
            return proxy.requests[0].line

    assert asyncio.run(main()) == "CONNECT models.example:443 HTTP/1.1"


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize(("step", "message"), [(hang, "no answer within"), (open_stream(b"a"), "sent nothing for")])
def test_silence_ends_a_request(step: Step, message: str, tls: ssl.SSLContext) -> None:
    async def main() -> None:
        transport = Transport(TimeLimits(first_byte=1 if step is hang else 30, idle=0.1))
        async with serve(step, tls=tls) as wire:
            with pytest.raises(TimedOut, match=message):
                await post(transport, wire.url)
            await transport.close()

    asyncio.run(main())


@pytest.mark.parametrize("variables", [{}, {"SSL_CERT_FILE": "/nonexistent"}, {"SSL_CERT_FILE": "/dev/null"}])
def test_a_machine_without_certificates_is_told_what_to_do(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in (variables or {"SSL_CERT_FILE": "", "SSL_CERT_DIR": str(tmp_path)}).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(CertificateUntrusted, match="no certificates to trust in SSL_CERT_"):
        asyncio.run(post(Transport(), "https://models.invalid/v1"))


@pytest.mark.parametrize(
    ("variables", "proxy"),
    [
        ({"HTTPS_PROXY": "http://user:word@h:3128"}, "the proxy h:3128 (HTTPS_PROXY)"),
        ({"https_proxy": "h:3128"}, "the proxy h:3128 (https_proxy)"),
        ({"ALL_PROXY": "socks5://h:1080"}, "the proxy h:1080 (ALL_PROXY)"),
        ({"HTTP_PROXY": "http://h:3128"}, ""),
        ({"HTTPS_PROXY": "http://h:3128", "NO_PROXY": "other,models.invalid"}, ""),
        ({}, ""),
    ],
)
def test_the_proxy_of_a_url_is_told_without_its_password(
    variables: dict[str, str], proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert proxy_for("https://models.invalid/v1") == proxy


@pytest.mark.usefixtures("trusted")
def test_a_compressed_answer_is_read(tls: ssl.SSLContext) -> None:
    async def packed(peer: Peer) -> None:
        body = gzip.compress(b"hello " * 9000)
        await peer.head(200, f"content-encoding: gzip\r\ncontent-length: {len(body)}\r\n")
        await peer.send(body)

    async def main() -> None:
        transport = Transport()
        async with serve(packed, status(200, "b"), tls=tls) as wire:
            assert await post(transport, wire.url) == (200, b"hello " * 9000)
            await transport.close()

    asyncio.run(main())


ASK = """
import asyncio, sys
from cru.core.base.net.transport import Transport
async def main():
    response = await Transport().post_stream(sys.argv[1], {}, (b"{}",))
    print((await response.read(9)).decode(), *sorted({"json", "pyreqwest", "pyreqwest.exceptions"} & set(sys.modules)))
    await response.close()
asyncio.run(main())
"""


@pytest.mark.usefixtures("trusted")
def test_what_only_failures_need_is_not_loaded(tls: ssl.SSLContext) -> None:
    async def main() -> None:
        async with serve(status(200, "good"), tls=tls) as wire:
            asked = await asyncio.create_subprocess_exec(sys.executable, "-c", ASK, wire.url, stdout=subprocess.PIPE)
            output, _ = await asked.communicate()
            assert output == b"good pyreqwest\n"

    asyncio.run(main())
