"""Whether the sandbox is on, and what it changes of a request, is shown without a run."""

from __future__ import annotations

import json

import pytest
from tests.core.guard.sandbox.conftest import Surroundings
from tests.kit import Reply, cru, server
from tests.kit.sandbox import needs_sandbox


@pytest.mark.sample(1)
@needs_sandbox
@pytest.mark.parametrize("is_on", [True, False])
def test_modes_and_permissions_say_whether_it_is_on(surroundings: Surroundings, is_on: bool) -> None:
    here = surroundings.here
    flags = ("--sandbox",) if is_on else ("--no-sandbox",)
    said = "sandbox: on, it confines" if is_on else "sandbox: off"
    here.configure()
    assert said in cru(*flags, "permissions", home=here).out
    assert json.loads(cru(*flags, "permissions", "--json", home=here).out)["is_sandboxed"] == is_on
    tried = cru(*flags, "permissions", "test", "outside_sandbox", "git push", home=here).out
    assert ("nothing confines commands here" in tried) != is_on
    with server([Reply("done")]) as model:
        here.configure(url=model.url)
        shown = cru(*flags, "/mode", home=here)
    assert said in shown.out + shown.err, shown


@needs_sandbox
def test_what_a_sandboxed_run_would_send_is_shown(surroundings: Surroundings) -> None:
    here = surroundings.here
    here.configure()
    rows = {}
    for flag in ("--no-sandbox", "--sandbox"):
        done = cru(flag, "trace", "--next", "--json", home=here)
        assert done.code == 0, done.err
        rows[flag] = {row["name"]: row["bytes"] for row in json.loads(done.out) if row["kind"] == "tool"}
    assert rows["--sandbox"]["bash"] > rows["--no-sandbox"]["bash"] + 200
    assert cru("--sandbox", "-L", home=here).code == 0
    assert "does not go with the command `models`" in cru("--sandbox", "models", home=here).err
