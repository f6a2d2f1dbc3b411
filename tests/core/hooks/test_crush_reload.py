"""L1 and L2 of Crush's own tests: a configuration that changes between two prompts is read again, and its matchers hold."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from tests.core.turn.support import World
from tests.kit.closing import close_later

SCRIPT = """call: bash {"command": "true"}
call: ls {}
---
text: ok
"""
HOOK = {"command": "echo $CRUSH_TOOL_NAME >> calls; exit 2", "matcher": "^bash$"}


@pytest.mark.parametrize("more", [{}, {"options": {"debug": True}}], ids=["L1 from disk", "L2 another field"])
def test_l1_l2_the_matcher_holds_before_and_after(tmp_path: Path, more: dict[str, object]) -> None:
    file = tmp_path / ".config" / "crush" / "crush.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(msgspec.json.encode({"hooks": {"PreToolUse": [HOOK]}}))
    world = World(tmp_path, SCRIPT * 1 + "---\n" + SCRIPT, settings={"hooks": {"dialects": ["crush"]}})
    close_later(world.session.close)
    calls = tmp_path / "project" / "calls"
    world.run("go")
    assert calls.read_text() == "bash\n"
    file.write_bytes(msgspec.json.encode({**more, "hooks": {"PreToolUse": [{**HOOK, "name": "again"}]}}))
    os.utime(file, ns=(1, 1))
    world.run("go on")
    assert calls.read_text() == "bash\nbash\n"
    assert [result.startswith("Blocked by ") for result in world.results()] == [True, False, True, False]


def test_l2_a_hook_that_is_gone_does_not_run(tmp_path: Path) -> None:
    file = tmp_path / ".config" / "crush" / "crush.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(msgspec.json.encode({"hooks": {"PreToolUse": [HOOK]}}))
    world = World(tmp_path, SCRIPT + "---\n" + SCRIPT, settings={"hooks": {"dialects": ["crush"]}, "mode": "trust"})
    close_later(world.session.close)
    world.run("go")
    file.write_text("{}")
    world.run("go on")
    assert (tmp_path / "project" / "calls").read_text() == "bash\n"
