"""Calls that did not run are shown as such wherever an old conversation is shown."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from cru.core.agents.commands import describe_entry
from cru.core.base.values.messages import MESSAGE, TOOL_CALL, TOOL_RESULT, Entry, FailureKind
from cru.core.conversations.entries import encode
from cru.core.undo.call_outcomes import results_by_call
from cru.faces.cli.chat.opening import read_opening
from cru.faces.cli.operations.listing import render_log

DID_NOT_RUN = [
    (FailureKind.HUMAN, "The user refused: no reason given"),
    (FailureKind.POLICY, "Not allowed by policy: a rule\nmore of it"),
    (FailureKind.HOOK, "Blocked by guard: never"),
    (FailureKind.ERROR, "Refused because of an error: boom"),
    (FailureKind.TIMEOUT, "Nobody answered in time: bash asks"),
    (FailureKind.INVALID, "unknown argument comand"),
    (FailureKind.UNKNOWN, "there is no tool bsh"),
    (FailureKind.HALTED, "not run: halted by guard"),
    (FailureKind.HALTED, ""),
]
RAN = [
    (None, "hi"),
    (FailureKind.FAILED, "[exit code 1]"),
    (FailureKind.TIMEOUT, "half\n[timed out after 1 s]"),
    (FailureKind.INTERRUPTED, "interrupted, may have run"),
]


def logged(which: FailureKind | None, content: str) -> list[Entry]:
    metadata = {} if which is None else {"which": which.value, "is_error": True}
    return [
        Entry(id="1", timestamp=1, entry_type=MESSAGE, content="go", role="user", metadata={"source": "user"}),
        Entry(id="2", timestamp=1, entry_type=TOOL_CALL, content='{"command":"rm x"}', to="bash", tool_call_id="c"),
        Entry(
            id="3", timestamp=1, entry_type=TOOL_RESULT, content=content, from_="bash", tool_call_id="c", metadata=metadata
        ),
    ]  # fmt: skip


def shown_everywhere(tmp_path: Path, entries: list[Entry]) -> list[str]:
    (tmp_path / "context.jsonl").write_bytes(b"".join(map(encode, entries)))
    return [
        read_opening(tmp_path, tmp_path, plain=True).text,
        "\n".join(render_log(entries, 0, verbose=False)),
        describe_entry(entries[1], results_by_call(entries)),
    ]


@pytest.mark.parametrize(("which", "content"), DID_NOT_RUN)
def test_what_did_not_run_says_so_and_why(tmp_path: Path, which: FailureKind, content: str) -> None:
    why = content.partition("\n")[0] or which.value
    for text in shown_everywhere(tmp_path, logged(which, content)):
        assert f"not run: {why}" in text and "more of it" not in text


@pytest.mark.parametrize(("which", "content"), RAN)
def test_what_ran_or_may_have_run_is_not_shown_as_refused(
    tmp_path: Path, which: FailureKind | None, content: str
) -> None:
    for text in shown_everywhere(tmp_path, logged(which, content)):
        assert "rm x" in text and "not run" not in text


def test_a_call_without_a_result_is_not_shown_as_refused(tmp_path: Path) -> None:
    for text in shown_everywhere(tmp_path, logged(None, "")[:2]):
        assert "rm x" in text and "not run" not in text


def test_a_reason_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    opening, log, _ = shown_everywhere(tmp_path, logged(FailureKind.HOOK, "Blocked by x: \x1b[2J"))
    assert "\x1b[2J" not in opening + log and "\\x1b[2J" in opening
    assert msgspec.json.encode(log)
