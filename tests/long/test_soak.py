"""Long runs of the real command: memory stays flat, nothing leaks, every request can be rebuilt."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.kit import Call, Received, Reply, cru, home, server, start
from tests.kit.run import Started

ROUNDS = 1000


def rule(request: Received) -> Reply:
    """Ask for one more shell call until there were enough."""
    done = sum(m["role"] == "tool" for m in request.body["messages"])
    return Reply(calls=[Call("bash", {"command": f"echo {done}"})]) if done < ROUNDS else Reply("DONE")


def memory(run: Started) -> tuple[float, int]:
    """Resident MB and open files of the process."""
    status = Path(f"/proc/{run.pid}/status").read_text()
    resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    return resident / 1024, len(os.listdir(f"/proc/{run.pid}/fd"))


@pytest.mark.long
@pytest.mark.real_start
def test_a_thousand_rounds_stay_small(tmp_path: Path) -> None:
    seen: dict[int, tuple[float, int]] = {}
    with server(rule) as model:
        here = home(tmp_path, config="fuel = 0\nmax_idle_rounds = 0\n", url=model.url)
        with start("-t", "prompt", home=here) as run:
            for mark in (50, 200, 900):
                model.wait(mark, timeout=60)
                seen[mark] = memory(run)
            assert run.wait(60).code == 0, run.err
        assert len(model.requests) == ROUNDS + 1
    print(f"\nrounds → (resident MB, open files): {seen}")
    assert seen[200][0] <= 60
    assert seen[900][0] - seen[200][0] <= 15
    assert seen[900][1] <= seen[50][1] + 2
    last = cru("trace", "--request", str(ROUNDS), home=here)
    assert last.code == 0 and "(as sent)" in last.out
