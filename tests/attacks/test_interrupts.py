"""What may take longer than half a second is done in a child, and one Ctrl-C ends both."""

from __future__ import annotations

import pytest
from tests.kit import Call, HomeDir, Reply, server, start
from tests.kit.waiting import wait_until

pytestmark = pytest.mark.real_start


def children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(number) for number in file.read().split()]


def test_one_interrupt_ends_a_search_that_does_not_end(home: HomeDir) -> None:
    (home.project / "a").write_text("a" * 60 + "\n")
    with server([Reply(calls=[Call("grep", {"pattern": "(a+)+b"})])]) as model:
        home.configure(url=model.url)
        with start("hi", home=home, env={"PATH": "/nowhere"}) as run:
            wait_until(lambda: children(run.pid))
            run.interrupt()
            done = run.wait(30)  # the search would end after a minute
    assert done.code == 130 and "interrupted" in done.err
