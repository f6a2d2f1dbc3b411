"""What every test of a whole program needs: a home folder, a model server, the installed command, a terminal, a killer, a clock.

from tests.kit import Call, Reply, cru, home, server

def test_it(tmp_path: Path) -> None:
    with server([Reply(calls=[Call("bash", {"command": "true"})]), Reply("done")]) as model:
        here = home(tmp_path, url=model.url)
        run = cru("--mode", "trust", "go", home=here)
    assert (run.code, run.out) == (0, "done\\n")
    assert len(model.requests) == 2
"""

from tests.kit.clock import Clock
from tests.kit.counts import conformance, docs_block
from tests.kit.home import HomeDir, home
from tests.kit.kill import kill_at
from tests.kit.pty import Terminal, pty
from tests.kit.run import Done, Started, cru, start, trust_project
from tests.kit.server import Server, server
from tests.kit.steps import Call, Drop, Hang, Raw, Received, Reply, Script, Status, Step
from tests.kit.waiting import wait_until

__all__ = [
    "Call",
    "Clock",
    "Done",
    "Drop",
    "Hang",
    "HomeDir",
    "Raw",
    "Received",
    "Reply",
    "Script",
    "Server",
    "Started",
    "Status",
    "Step",
    "Terminal",
    "conformance",
    "cru",
    "docs_block",
    "home",
    "kill_at",
    "pty",
    "server",
    "start",
    "trust_project",
    "wait_until",
]
