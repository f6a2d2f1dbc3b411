"""Logging in at a server that asks for it, with a small authorisation server and a browser that does as it is told."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.features.mcp.small_server import SERVER, at_url
from tests.features.mcp.test_session import results
from tests.kit import Call, Done, HomeDir, Reply, cru, home, server, start, wait_until


@contextmanager
def login_server(folder: Path, *options: str) -> Iterator[str]:
    port_file = folder / "login-port"
    program = str(SERVER.with_name("login_server.py"))
    process = subprocess.Popen([sys.executable, program, str(port_file), *options], stdin=subprocess.DEVNULL)
    try:
        wait_until(lambda: port_file.exists() and port_file.read_text(), what="the server's port")
        yield f"http://127.0.0.1:{port_file.read_text()}/mcp"
    finally:
        process.kill()
        process.wait()


def log_in(here: HomeDir) -> Done:
    """Do what a person does: visit the address that is named."""
    with start("mcp", "login", "far", home=here, env={"BROWSER": "true"}) as run:
        run.wait_for("log in here: ")
        wait_until(lambda: run.err.partition("log in here: ")[2].endswith("\n"), what="the whole address")
        address = re.search(r"log in here: (\S+)", run.err)
        assert address is not None
        with urllib.request.urlopen(address[1], timeout=30) as page:
            assert b"cru" in page.read()
        return run.wait()


def tokens(here: HomeDir) -> list[Path]:
    return list((here.cru / "mcp_tokens").glob("*"))


@pytest.mark.slow
def test_a_login_is_asked_for_made_used_and_forgotten(tmp_path: Path) -> None:
    steps = [Reply(calls=[Call("mcp_far_echo", {"text": "hi"})]), Reply("done")]
    with login_server(tmp_path) as url, server(steps) as model:
        here = home(tmp_path, url=model.url, config='[permissions]\nallow = ["mcp_far_*"]\n' + at_url(url, "far"))
        before = cru("mcp", "test", "far", home=here)
        assert before.code == 1 and "it wants you to log in" in before.err and "cru mcp login far" in before.err, before
        assert not tokens(here)
        done = log_in(here)
        assert done.code == 0 and "you are logged in at far: 16 tools" in done.out, done
        assert [stat.S_IMODE(file.stat().st_mode) for file in tokens(here)] == [0o600]
        run = cru("go", home=here)
        assert results(model.requests[-1]) == ["hi"], run
        records = [path for path in here.context().iterdir() if path.is_file()]
        assert not [path.name for path in records if b"secret-" in path.read_bytes()]
        assert "is forgotten" in cru("mcp", "logout", "far", home=here).out and not tokens(here)
        assert "it wants you to log in" in cru("mcp", "test", "far", home=here).err


@pytest.mark.slow
def test_a_token_that_has_expired_is_renewed(tmp_path: Path) -> None:
    with login_server(tmp_path) as url:
        here = home(tmp_path, config=at_url(url, "far"))
        log_in(here)
        stored = json.loads(tokens(here)[0].read_text())
        assert stored["authority"]["token_endpoint"].endswith("/token")
        tokens(here)[0].write_text(json.dumps({**stored, "at": 1.0}))
        tested = cru("mcp", "test", "far", home=here)
        fresh = json.loads(tokens(here)[0].read_text())
    assert tested.code == 0 and fresh["tokens"]["access_token"] != stored["tokens"]["access_token"], tested


@pytest.mark.slow
def test_a_person_who_refuses_is_told(tmp_path: Path) -> None:
    with login_server(tmp_path, "refuse") as url:
        done = log_in(home(tmp_path, config=at_url(url, "far")))
    assert done.code == 1 and "the login failed: access_denied" in done.err and "Traceback" not in done.err, done


@pytest.mark.slow
def test_a_login_is_not_led_into_a_private_network(tmp_path: Path) -> None:
    with login_server(tmp_path, "authority=http://169.254.169.254") as url:
        here = home(tmp_path, config=at_url(url, "far"))
        done = cru("mcp", "login", "far", home=here, env={"BROWSER": "true"})
    assert done.code == 1 and "it leads to 169.254.169.254" in done.err, done
