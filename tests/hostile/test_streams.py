"""Hostile servers of models, through the real command (streams.py is the table)."""

from __future__ import annotations

import pytest
from tests.hostile import checks
from tests.hostile.streams import SHORT_STREAMS, STREAMS
from tests.kit import HomeDir, Raw, Received, Reply, cru, server

CONFIG = 'mode = "trust"\nrequest_tries = 1\nidle_timeout = 2\nfirst_byte_timeout = 2\nstall_timeout = 10\nreply_size_limit = 1_000_000\n'


def check(home: HomeDir, name: str) -> None:
    data = STREAMS[name]()

    def answer(request: Received) -> Raw | Reply:
        return Raw(data) if len(model.requests) == 1 else Reply("all is well")

    with server(answer) as model:
        home.configure(CONFIG, model.url)
        done = cru("hello", home=home)
        print(str(done)[:3000])
        checks.check_messages(done, (0, 1))
        checks.check_next_run(home)
    checks.check_log(home, ["hello", "again"])
    checks.check_files(home)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", SHORT_STREAMS)
def test_short(home: HomeDir, name: str) -> None:
    check(home, name)


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.parametrize("name", STREAMS)
def test_all(home: HomeDir, name: str) -> None:
    check(home, name)
