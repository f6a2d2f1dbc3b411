"""Runs outside of the sandbox: what a rule permits, and when it does not, through the real command."""

from __future__ import annotations

import pytest
from tests.core.guard.sandbox.conftest import Surroundings
from tests.core.guard.sandbox.project_code import KINDS
from tests.core.guard.sandbox.test_escapes import OUTSIDE, runs
from tests.kit import Call, Reply, cru, pty, server, start, wait_until
from tests.kit.sandbox import needs_sandbox

RUNS = "no rule permits a run outside of the sandbox while something in it could change"
SLEEPS = "sleep 98765"


def _begin(around: Surroundings, kind: str) -> list[Reply]:
    """What has something confined run, if anything does."""
    if kind == "a server of the project":
        KINDS["server"].install(around.here)
        return [Reply(calls=[KINDS["server"].call("true")])]
    return [Reply(calls=[Call("bash", {"command": SLEEPS, "background": True})])]


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize("kind", ["a command in the background", "a server of the project"])
def test_a_rule_does_not_hold_while_something_confined_runs(surroundings: Surroundings, kind: str) -> None:
    here = surroundings.here
    begin = _begin(surroundings, kind)
    outside = Reply(calls=[Call("bash", {"command": OUTSIDE, "outside_sandbox": True})])
    with server([*begin, outside, Reply("done"), *begin, outside, *[Reply("done")] * 2]) as model:
        here.configure("[permissions]\nallow = ['outside_sandbox:*']\n", url=model.url)
        words = ("--sandbox", "--mode", "trust", "--hooks", "all", "-C", "c", "go")
        done = cru(*words, home=here)
        assert done.code == 0, done.err
        results = [str(entry["content"]) for entry in here.log("c") if entry["entry_type"] == "tool_result"]
        assert RUNS in results[1] and "nobody can be asked" in results[1]
        assert (SLEEPS in results[1]) == (kind != "a server of the project")
        assert not (surroundings.out / "new").exists()
        with pty(*words, home=here) as terminal:
            terminal.expect(RUNS)
            terminal.expect("no > ")
            terminal.send("y")
            assert terminal.wait() == 0
    assert (surroundings.out / "new").read_text() == "x\n"


@pytest.mark.sample(1)
@needs_sandbox
@pytest.mark.parametrize("is_detached", [False, True])
def test_nor_while_something_confined_of_another_session_runs(surroundings: Surroundings, is_detached: bool) -> None:
    here = surroundings.here
    (here.project / "wait.sh").write_text("touch begun; until [ -e stop ]; do sleep 0.02; done")
    more = {"background": True, "detached": True} if is_detached else {}
    other = [Reply(calls=[Call("bash", {"command": "sh wait.sh", **more})]), Reply("done")]
    outside = [Reply(calls=[Call("bash", {"command": OUTSIDE, "outside_sandbox": True})]), Reply("done")]
    with server(other) as first, server([*outside, *outside]) as second:
        here.configure("[permissions]\nallow = ['outside_sandbox:*', 'bash:sh wait.sh']\n", url=first.url)
        with start("-t", "--sandbox", "-C", "a", "go", home=here) as running:
            wait_until((here.project / "begun").exists)
            if is_detached:
                assert running.wait().code == 0
            here.configure("[permissions]\nallow = ['outside_sandbox:*']\n", url=second.url)
            assert cru("--sandbox", "-C", "c", "go", home=here).code == 0
            assert not (surroundings.out / "new").exists()
            (here.project / "stop").touch()
            if not is_detached:
                assert running.wait().code == 0
        wait_until(lambda: not runs("wait.sh"))
        assert cru("--sandbox", "-C", "c", "go", home=here).code == 0
    results = [str(entry["content"]) for entry in here.log("c") if entry["entry_type"] == "tool_result"]
    assert RUNS in results[0] and "of another session" in results[0]
    assert (surroundings.out / "new").read_text() == "x\n"


@pytest.mark.parametrize("flags", [(), ("-s", "sandbox.mode=auto")])
def test_where_nothing_confines_the_word_means_nothing(surroundings: Surroundings, flags: tuple[str, ...]) -> None:
    here = surroundings.here
    bwrap = surroundings.out / "bwrap"
    bwrap.write_text("#!/bin/sh\nexit 1\n")
    bwrap.chmod(0o755)
    env = {"PATH": f"{surroundings.out}:{here.env['PATH']}"}
    calls = [Call("bash", {"command": command, "outside_sandbox": True}) for command in (OUTSIDE, "echo hello", "rm x")]
    with server([Reply(calls=calls), Reply("done")]) as model:
        here.configure("[permissions]\nallow = ['bash:echo *']\n", url=model.url)
        done = cru(*flags, "-C", "c", "go", home=here, env=env)
    assert done.code == 0, done.err
    results = [str(entry["content"]) for entry in here.log("c") if entry["entry_type"] == "tool_result"]
    assert results[1] == "hello" and "sandbox" not in results[2] and "bash:rm x" in results[2]
