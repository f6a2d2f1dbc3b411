"""Which ends of tasks a log has told."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec
import pytest

from cru.core.agents.record import TaskKind, TaskRecord, TaskStatus
from cru.core.agents.untold import BEGINNING, ToldEnds, clear_old, mark_untold, untold_tasks

REPORT = {"entry_type": "message", "role": "user", "metadata": {"source": "task", "tasks": ["other", "t1"]}}
ANSWER = {"entry_type": "tool_result", "tool_call_id": "c1"}
CUT = {**ANSWER, "metadata": {"which": "interrupted", "is_error": True}}
NAMED = {"entry_type": "message", "content": "what about t1 and c1?"}


@pytest.mark.parametrize(
    ("entry", "age", "fields", "told"),
    [
        (REPORT, 0, {"background": True}, True),
        (REPORT, 100, {"background": True}, False),  # how it ended before it went on
        (NAMED, 0, {"background": True}, False),
        (ANSWER, 0, {"background": True}, False),  # that it began
        (ANSWER, 0, {}, True),
        (ANSWER, 100, {}, False),  # an id that a provider gave anew
        (CUT, 0, {}, False),
        (CUT, 0, {"status": TaskStatus.CANCELLED}, True),
        (NAMED, 0, {"call_id": ""}, True),  # a script has waited for it
        (NAMED, 0, {"call_id": "", "status": TaskStatus.LOST}, False),
    ],
)
@pytest.mark.parametrize("file", ["context.jsonl", "transcript_archive.jsonl"])
def test_a_log_tells_an_end_by_a_report_or_by_the_answer_of_the_call(
    tmp_path: Path, entry: dict[str, object], age: int, fields: dict[str, object], told: bool, file: str
) -> None:
    now = time.time()
    line = {"id": "e1", "timestamp": int(now) - age, "from": "a", "to": "b", "content": "", **entry}
    (tmp_path / file).write_bytes(msgspec.json.encode(line) + b"\n")
    known = {"call_id": "c1", "status": TaskStatus.COMPLETED, **fields}
    record = TaskRecord(id="t1", kind=TaskKind.SUBAGENT, prompt="x", created=now, **known)  # type: ignore[arg-type]
    assert ToldEnds(tmp_path).has(record) is told


@pytest.mark.parametrize("tasks", [[["t1"]], [1], {"t1": 1}, "t1", None])
def test_an_entry_that_names_no_tasks_is_passed_over_and_told(tmp_path: Path, tasks: object) -> None:
    now = int(time.time())
    report = {"id": "e1", "timestamp": now, "from": "a", "to": "b", "content": "", **REPORT}
    strange = {**report, "id": "e2", "metadata": {"tasks": tasks}}
    (tmp_path / "context.jsonl").write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in (report, strange)))
    record = TaskRecord(id="t1", kind=TaskKind.SUBAGENT, prompt="x", created=now, background=True)
    ends = ToldEnds(tmp_path)
    assert ends.has(record)
    (problem,) = ends.problems
    assert problem.startswith(f"entry e2 in {tmp_path} names no tasks, and was passed over: ")


def test_one_without_a_record_is_forgotten_once_it_cannot_be_about_to_begin(tmp_path: Path) -> None:
    mark_untold(tmp_path, "t1")
    clear_old(tmp_path, "t1")
    assert untold_tasks(tmp_path) == ["t1"]
    long_ago = time.time() - 2 * BEGINNING
    os.utime(tmp_path / "tasks" / "untold" / "t1", (long_ago, long_ago))
    clear_old(tmp_path, "t1")
    assert untold_tasks(tmp_path) == []
