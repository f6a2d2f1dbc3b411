"""What a later start makes of files of tasks that somebody has damaged."""

from __future__ import annotations

import json

import pytest
from tests.kit import HomeDir, Reply, cru, server

RECORD = {
    "id": "aaaaaaaa",
    "kind": "subagent",
    "prompt": "p",
    "status": "running",
    "created": 1e9,
    "started": 1e9,
    "background": True,
}
TREE = {"path": "/tmp/cru-worktree-aaaaaaaa-x/p", "project": "/tmp", "base": "abc"}


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "fields",
    [
        {"parent": "a\0b"},
        {"parent": "../../elsewhere"},
        {"parent": ["x"]},
        {"worktree": {**TREE, "path": "a\0b"}},
        {"worktree": {**TREE, "base": "--output=/tmp/x"}},
        {"created": "yesterday"},
    ],
)
def test_a_record_that_says_impossible_things_is_told_once_and_left_aside(
    home: HomeDir, fields: dict[str, object]
) -> None:
    folder = home.context() / "tasks"
    (folder / "untold").mkdir(parents=True)
    (folder / "aaaaaaaa").mkdir()
    for task_id, more in (("aaaaaaaa", fields), ("bbbbbbbb", {})):
        (folder / task_id).mkdir(exist_ok=True)
        (folder / task_id / "task.json").write_text(json.dumps({**RECORD, **more}))
        (folder / "untold" / task_id).touch()
    with server([Reply("one"), Reply("two")]) as model:
        home.configure(url=model.url)
        first, second = cru("a", home=home), cru("b", home=home)
    assert (first.code, first.out, second.code, second.out) == (0, "one\n", 0, "two\n")
    assert "cru: what became of task aaaaaaaa is not known, and its files were left as they are: " in first.err
    assert "task bbbbbbbb" in first.err  # the others are told as ever
    assert "task" not in second.err and (folder / "aaaaaaaa" / "task.json").exists()


def test_a_log_line_that_names_no_tasks_does_not_keep_a_context_from_being_used(home: HomeDir) -> None:
    with server([Reply("one"), Reply("two"), Reply("three")]) as model:
        home.configure(url=model.url)
        assert cru("a", home=home).code == 0
        log = home.context() / "context.jsonl"
        line = {**json.loads(log.read_text().splitlines()[-1]), "id": "strange", "metadata": {"tasks": [["x"]]}}
        log.write_text(f"{log.read_text()}{json.dumps(line)}\n")
        task = home.context() / "tasks" / "bbbbbbbb"
        task.mkdir(parents=True)
        (task / "task.json").write_text(json.dumps(RECORD))
        (task.parent / "untold").mkdir()
        (task.parent / "untold" / "bbbbbbbb").touch()
        second, third = cru("b", home=home), cru("c", home=home)
    assert (second.code, second.out, third.code, third.out) == (0, "two\n", 0, "three\n")
    assert "cru: entry strange in " in second.err and "task bbbbbbbb" in second.err
    assert "task" not in third.err
