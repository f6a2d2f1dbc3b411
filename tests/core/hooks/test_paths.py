"""Paths that hooks of each dialect read: one spelling, so that a guard by prefix cannot be passed by."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace
from tests.core.hooks.dialect_world import about, event, stdin

from cru.core.base.values.messages import ToolCall
from cru.core.events.payloads import PermissionRequested, ToolBatchCompleted, ToolBeforeCall, ToolCompleted, ToolFailed
from cru.core.hooks.dialects import load_dialects
from cru.core.hooks.model.mapping import Dialect

DIALECTS: dict[str, Dialect] = load_dialects()
ABSOLUTE = ("claude", "codex", "gemini")
PAYLOADS: dict[str, Callable[[dict[str, Any]], Struct]] = {
    "before": lambda args: ToolBeforeCall("write", args, "c"),
    "asked": lambda args: PermissionRequested("write", "write", "", "c", "", args),
    "completed": lambda args: ToolCompleted("write", args, "", "c"),
    "failed": lambda args: ToolFailed("write", args, "", "failed", "c"),
}
NAMES: dict[str, dict[str, str]] = {
    "claude": {"before": "PreToolUse", "asked": "PermissionRequest", "completed": "PostToolUse", "failed": "PostToolUseFailure"},
    "codex": {"before": "PreToolUse", "asked": "PermissionRequest", "completed": "PostToolUse", "failed": "PostToolUse"},
    "gemini": {"before": "BeforeTool", "completed": "AfterTool", "failed": "AfterTool"},
    "crush": {"before": "PreToolUse"},
}  # fmt: skip
SPELLINGS = ["secret/x", "src/../secret/x", "./secret//x/", "../project/secret/x", "secret/./x"]


@pytest.mark.parametrize("written", [*SPELLINGS, "/project/src/../secret/x", "//project/secret/x"])
@pytest.mark.parametrize("dialect", NAMES)
def test_each_event_has_the_path_in_one_spelling(dialect: str, written: str) -> None:
    whole = dialect in ABSOLUTE or written.startswith("/")
    for kind, name in NAMES[dialect].items():
        payload = PAYLOADS[kind]({"file_path": written, "content": ""})
        read = stdin(DIALECTS[dialect], name, event(payload), about(cwd=Path("/project/src")))
        assert read["tool_input"]["file_path"] == ("/project/secret/x" if whole else "secret/x"), (name, read)


def test_a_batch_has_them_too() -> None:
    calls = (ToolCall("c", "write", '{"file_path": "src/../secret/x", "content": ""}'),)
    read = stdin(DIALECTS["claude"], "PostToolBatch", event(ToolBatchCompleted(calls, 1)))
    assert read["tool_calls"][0]["tool_input"]["file_path"] == "/project/secret/x"


@pytest.mark.parametrize("dialect", ABSOLUTE)
def test_a_tool_that_opens_what_the_model_wrote(tmp_path: Path, dialect: str) -> None:
    """Tools of servers get `link/..` as it was written, and open the parent of the link's target."""
    (tmp_path / "elsewhere" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to("elsewhere/deep")
    facts = replace(about(tmp_path), user_home=tmp_path)
    table = {"link/../x": "elsewhere/x", "a/../x": "x", "link/x": "link/x", "a/../../x": "../x"}
    for written, path in table.items():
        payload = ToolBeforeCall("mcp_files_write", {"path": written}, "c")
        read = stdin(DIALECTS[dialect], NAMES[dialect]["before"], event(payload), facts)
        expected = tmp_path.parent / "x" if path == "../x" else tmp_path / path
        assert read["tool_input"]["path"] == str(expected), written
