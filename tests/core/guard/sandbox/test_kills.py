"""What a confined command kills is its own: cru, the process that watches over commands, other commands and the machine go on."""

from __future__ import annotations

import pytest
from tests.core.guard.sandbox.conftest import Surroundings
from tests.kit import Call, Reply, cru, server
from tests.kit.sandbox import needs_sandbox

KILLS = (
    "kill -9 $PPID; echo x > after",
    "kill -9 -$PPID; echo x > after",
    "kill -9 1; echo x > after",
    "kill -9 -1; echo x > after",
    "kill -9 0",
    "kill -9 -- -$$",
    "sh -c 'kill -9 $PPID'; setsid sh -c 'kill -9 $PPID; kill -9 -1'",
    "(sleep 0.1; kill -9 $PPID; kill -9 1 -1) & wait",
    "kill -STOP $PPID; kill -STOP 1; kill -TERM $PPID 1; kill -HUP -1",
    "for signal in 1 2 3 6 9 15; do kill -$signal $PPID 1 2>/dev/null; done",
    "python3 -c \"import os; [os.kill(pid, 9) for pid in range(2, 32000) if os.path.exists('/proc/%d' % pid) and pid != os.getpid()]\"",
)
"""Each ends, and the calls behind it run."""


@needs_sandbox
def test_a_kill_in_the_sandbox_reaches_nobody_outside(surroundings: Surroundings) -> None:
    here = surroundings.here
    beside = Call("bash", {"command": "echo begun; sleep 300", "background": True})
    calls = [Call("bash", {"command": surroundings.fill(command), "timeout": 20}) for command in KILLS]
    still = Call("bash", {"command": "echo still here"})
    with server(
        [Reply(calls=[beside]), *(Reply(calls=[call]) for call in calls), Reply(calls=[still]), Reply("done")]
    ) as model:
        here.configure(url=model.url)
        done = cru("--sandbox", "-t", "go", home=here, env={"TMPDIR": str(surroundings.temporary)}, timeout=120)
    assert (done.code, done.out) == (0, "done\n"), done
    assert "ended the process that ends commands" not in done.err
    results = [str(entry["content"]) for entry in here.log() if entry["entry_type"] == "tool_result"]
    assert len(results) == len(KILLS) + 2 and results[-1].strip() == "still here"
    assert "sleep 300" in done.err, "the command in the background ran until the session ended"
    assert surroundings.process.poll() is None and not surroundings.was_reached()
    assert list(surroundings.temporary.iterdir()) == []


@needs_sandbox
@pytest.mark.parametrize("number", ["KILL", "TERM", "INT", "HUP"])
def test_outside_of_the_sandbox_the_same_would_end_cru(surroundings: Surroundings, number: str) -> None:
    """So the test above would fail if nothing confined."""
    here = surroundings.here
    with server([Reply(calls=[Call("bash", {"command": f"kill -{number} $PPID; sleep 5"})]), Reply("done")]) as model:
        here.configure(url=model.url)
        done = cru("-t", "--no-sandbox", "go", home=here)
    assert done.code not in (0, 1), done
