"""What TLS needs once is begun before the rest of a start is loaded, and only where TLS is expected."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading

import pytest
from tests.kit import HomeDir
from tests.kit.waiting import PATIENCE

from cru.core.base.net.seeding import start_seeding

NOTES = """
import sys
import cru.core.base.net.seeding as seeding
real = seeding.start_seeding
def note():
    print("SEEDING", "asyncio" in sys.modules, "cru.core.compose" in sys.modules, "cru.core.turn" in sys.modules, file=sys.stderr)
    real()
seeding.start_seeding = note
sys.argv = ["cru", *sys.argv[1:]]
from cru.faces.cli.main import main
main()
"""
FIRST = "SEEDING False False False"


def run(home: HomeDir, *words: str, **env: str) -> str:
    """What the command writes to standard error."""
    return subprocess.run(
        [sys.executable, "-c", NOTES, *words],
        env=home.env | env, cwd=home.project, stdin=subprocess.DEVNULL, capture_output=True, text=True,
    ).stderr  # fmt: skip


@pytest.fixture
def nobody() -> str:
    """A port where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.slow
def test_it_begins_before_asyncio_and_the_engine_are_loaded(home: HomeDir, nobody: str) -> None:
    home.configure(f'model = "m"\nbase_url = "https://{nobody}/v1"\napi_key = "k"\n')
    assert FIRST in run(home, "hi")


@pytest.mark.slow
def test_it_begins_where_a_key_of_a_provider_stands_in_the_environment(home: HomeDir, nobody: str) -> None:
    home.configure("")
    assert FIRST in run(home, "hi", OPENROUTER_API_KEY="k", HTTPS_PROXY=f"http://{nobody}")


@pytest.mark.sample(1)
@pytest.mark.parametrize("settings", ['base_url = "http://{nobody}/v1"\nmodel = "m"\n', 'model = "scripted:/none"\n'])
def test_it_does_not_begin_for_a_model_on_this_machine(home: HomeDir, nobody: str, settings: str) -> None:
    home.configure(settings.format(nobody=nobody))
    assert "SEEDING" not in run(home, "hi", OPENAI_API_KEY="k")


def test_it_does_not_begin_where_no_model_is_asked(home: HomeDir, nobody: str) -> None:
    home.configure(f'model = "m"\nbase_url = "https://{nobody}/v1"\napi_key = "k"\n')
    assert "SEEDING" not in run(home, "-L")


def test_what_goes_wrong_in_it_is_told_by_the_request(home: HomeDir, nobody: str) -> None:
    home.configure(f'model = "m"\nbase_url = "https://{nobody}/v1"\napi_key = "k"\n')
    error = run(home, "hi", SSL_CERT_FILE="/no/such/file", SSL_CERT_DIR="/no/such/folder")
    assert FIRST in error and "Traceback" not in error and "no certificates to trust" in error


@pytest.mark.parametrize("trusted", ["", "/no/such/file"])
def test_it_is_a_handshake_with_a_socket_of_this_process_that_reads_nothing_of_what_is_trusted(
    monkeypatch: pytest.MonkeyPatch, trusted: str
) -> None:
    if trusted:  # with that nothing that verifies certificates can be built
        monkeypatch.setenv("SSL_CERT_FILE", trusted)
        monkeypatch.setenv("SSL_CERT_DIR", trusted)
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(PATIENCE)
    monkeypatch.setattr(socket, "create_server", lambda address: server.dup())
    before = set(threading.enumerate())
    start_seeding()
    with server:
        connection, _ = server.accept()
        with connection:
            assert connection.recv(1) == b"\x16"
    for thread in set(threading.enumerate()) - before:
        thread.join()
