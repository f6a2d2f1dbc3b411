"""Commands in the background, in the words of the programs whose hooks hear of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cru.core.hooks.dialects.claude.tools import TOOLS as CLAUDE
from cru.core.hooks.dialects.crush.dialect import TOOLS as CRUSH
from cru.core.hooks.model.mapping import ToolMapping

WORDS: list[tuple[ToolMapping, str, str, dict[str, Any], dict[str, Any]]] = [
    (CLAUDE, "bash", "Bash", {"command": "x", "background": True}, {"command": "x", "run_in_background": True}),
    (CLAUDE, "task_output", "TaskOutput", {"id": "a", "wait": 2}, {"task_id": "a", "timeout": 2000}),
    (CLAUDE, "task_cancel", "TaskStop", {"id": "a"}, {"task_id": "a"}),
    (CRUSH, "bash", "bash", {"command": "x", "background": True}, {"command": "x", "run_in_background": True}),
    (CRUSH, "task_output", "job_output", {"id": "a"}, {"shell_id": "a"}),
    (CRUSH, "task_cancel", "job_kill", {"id": "a"}, {"shell_id": "a"}),
]


@pytest.mark.parametrize(("tools", "own", "foreign", "args", "theirs"), WORDS)
def test_the_words_lead_there_and_back(
    tools: ToolMapping, own: str, foreign: str, args: dict[str, Any], theirs: dict[str, Any]
) -> None:
    assert tools.foreign_name(own) == foreign and tools.own_name(foreign) == own
    assert tools.to_foreign(own, args, Path("/")) == theirs
    assert tools.to_own(own, theirs) == args


def test_older_names_are_known_too() -> None:
    assert {CLAUDE.own_name(name) for name in ("BashOutput", "BashOutputTool", "AgentOutputTool")} == {"task_output"}
    assert {CLAUDE.own_name(name) for name in ("KillShell", "KillBash")} == {"task_cancel"}
