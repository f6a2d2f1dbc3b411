"""A1 to A16 of Crush's own tests: what several hooks of one call come to, composed by the bus.

Where Crush keeps the context of a denied call and never shows it, the bus drops it (docs/events.md, "What it answers"). An empty
merged input is, with us, a call whose arguments nobody changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.core.hooks.crush_world import printed

from cru.core.hooks.model.result import HookRun

ORIGINAL = {"command": "orig", "timeout": 60}


def patch(value: Any) -> dict[str, Any]:
    return {"decision": "allow", "updated_input": value}


def test_a1_nothing(tmp_path: Path) -> None:
    got = printed(tmp_path)
    assert (got.decision, got.reason, got.context, got.outcome.answer.halt) == ("none", "", "", False)


def test_a2_allow(tmp_path: Path) -> None:
    assert printed(tmp_path, {"decision": "allow"}).decision == "allow"


def test_a3_deny_beats_allow_and_context_of_a_denied_call_goes_nowhere(tmp_path: Path) -> None:
    got = printed(tmp_path, {"decision": "allow", "context": "ctx1"}, {"decision": "deny", "reason": "blocked"})
    assert (got.decision, got.reason, got.context) == ("deny", "blocked", "")


def test_a4_reasons_are_joined_in_order(tmp_path: Path) -> None:
    got = printed(tmp_path, {"decision": "deny", "reason": "reason1"}, {"decision": "deny", "reason": "reason2"})
    assert (got.decision, got.reason) == ("deny", "reason1\nreason2")


def test_a5_context_is_joined_in_order(tmp_path: Path) -> None:
    got = printed(tmp_path, {"decision": "allow", "context": "ctx-a"}, {"context": "ctx-b"})
    assert (got.decision, got.context) == ("allow", "ctx-a\nctx-b")


def test_a6_none_then_allow(tmp_path: Path) -> None:
    assert printed(tmp_path, "", {"decision": "allow"}).decision == "allow"


def test_a7_halt_beats_allow(tmp_path: Path) -> None:
    got = printed(tmp_path, {"decision": "allow", "reason": "fine"}, {"halt": True, "reason": "stop now"})
    assert got.outcome.answer.halt and got.reason == "stop now"


def test_a7_an_allow_that_halts_gives_its_reason(tmp_path: Path) -> None:
    got = printed(tmp_path, {"decision": "allow", "halt": True, "reason": "stop now"})
    assert got.outcome.answer.halt and got.reason == "stop now"


@pytest.mark.parametrize("output", [{"decision": "deny", "halt": True, "reason": "stop"}, HookRun(49, "", "stop\n")])
def test_a8_a_halting_deny_says_its_reason_once(tmp_path: Path, output: Any) -> None:
    got = printed(tmp_path, output)
    assert (got.outcome.answer.halt, got.decision, got.reason) == (True, "deny", "stop")


def test_a9_patches_are_merged_one_after_another(tmp_path: Path) -> None:
    got = printed(tmp_path, patch({"command": "first", "keep": "me"}), patch({"command": "second"}), args=ORIGINAL)
    assert got.args == {"command": "second", "keep": "me", "timeout": 60}
    assert got.decision == "allow"  # their own group's changes do not void an allow


def test_a10_nested_values_are_replaced_whole(tmp_path: Path) -> None:
    got = printed(tmp_path, patch({"env": {"FOO": "bar"}}), args={"env": {"BAZ": "qux"}, "command": "ls"})
    assert got.args == {"env": {"FOO": "bar"}, "command": "ls"}


def test_a11_a_rewrite_and_a_later_deny(tmp_path: Path) -> None:
    assert printed(tmp_path, patch({"command": "ls"}), {"decision": "deny"}, args=ORIGINAL).decision == "deny"


def test_a12_no_patches_no_change(tmp_path: Path) -> None:
    got = printed(tmp_path, {"decision": "allow"}, "", args=ORIGINAL)
    assert got.args == ORIGINAL and got.outcome.edits == ()


@pytest.mark.parametrize(
    ("case", "bad"), [("a13", "not-an-object"), ("a13", ["x"]), ("a13", 5), ("a14", "{broken json")]
)
def test_a13_a14_a_bad_patch_is_left_out_and_the_rest_counts(tmp_path: Path, case: str, bad: Any) -> None:
    first = {**patch(bad), "context": "noted"}
    got = printed(tmp_path, first, patch({"command": "good"}), args=ORIGINAL)
    assert got.args == {"command": "good", "timeout": 60} and got.context == "noted"
    assert any("updated_input is not an object" in text for text in got.notices), case


def test_a15_arguments_that_are_no_object_take_no_patch(tmp_path: Path) -> None:
    given = {"_raw": '"just-a-string"'}  # what the bus carries for arguments that are no object
    got = printed(tmp_path, patch({"command": "x"}), args=given, valid=False)
    assert got.args == given and got.outcome.edits == ()
    assert any("arguments are not an object" in text for text in got.notices)
    assert got.hooks.given[0][1]["tool_input"] == "just-a-string"


def test_a16_a_null_patch_is_none(tmp_path: Path) -> None:
    got = printed(tmp_path, patch(None), args=ORIGINAL)
    assert got.args == ORIGINAL and got.outcome.edits == () and got.notices == []


def test_an_empty_patch_changes_nothing(tmp_path: Path) -> None:
    assert printed(tmp_path, patch({}), args=ORIGINAL).args == ORIGINAL


def test_keys_with_dots_are_taken_literally(tmp_path: Path) -> None:
    assert printed(tmp_path, patch({"a.b": 1, ":c": 2}), args={"a": {"b": 0}}).args == {
        "a": {"b": 0},
        "a.b": 1,
        ":c": 2,
    }
