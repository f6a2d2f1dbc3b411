"""A workflow and sub-agents: what one agent moves holds up nobody else's calls."""

from __future__ import annotations

from pathlib import Path

from tests.core.agents.support import call, configure_scripts, script
from tests.kit import cru, home

SOURCE = """
cru.fsm.define { name = "ship", initial = "work", states = {
  work = { tools = { "task", "read", "ls" }, to = { "rest" } },
  rest = { tools = { "ls", "call_user" }, to = { "done" }, back = { "work" } },
  done = { final = true } } }
"""


def test_a_move_by_a_sub_agent_holds_up_no_calls_after_its_batch(tmp_path: Path) -> None:
    here = home(tmp_path)
    (here.cru / "plugins").mkdir(parents=True)
    (here.cru / "plugins" / "ships.lua").write_text(SOURCE)
    child = script(
        tmp_path, "child", 'call: workflow {"to": "rest"}\ncall: ls {}\n---\ncall: ls {}\n---\ntext: below\n'
    )
    main = f'{call("general", child)}\n---\ncall: ls {{}}\n---\ncall: call_user {{"message": "so?"}}\nrepeat: 2\n'
    configure_scripts(here, tmp_path, script(tmp_path, "main", main))
    assert cru("/ship x", home=here).code == 3  # its question is answered once
    (log,) = here.context().glob("tasks/*/context.jsonl")
    results = [
        entry["content"]
        for entry in here.lines(f"default/tasks/{log.parent.name}", "context.jsonl")
        if entry["entry_type"] == "tool_result"
    ]
    assert "may change the state" in results[1] and results[2] == "(empty folder)"
    own = [entry["content"] for entry in here.log() if entry["entry_type"] == "tool_result"]
    assert own[:2] == ["below", "(empty folder)"]
