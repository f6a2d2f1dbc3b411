"""Anchors that take back and bring again: whoever reads the log, and whenever, sees the same."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.core.conversations.support import again, fresh, said, texts

from cru.core.conversations.entries import REDO, REDOES, UNDO
from cru.core.conversations.store import FileContext


def undo(context: FileContext, count: int) -> None:
    visible = context.visible()
    context.anchor(UNDO, context.summary(), [entry.id for entry in visible[: max(0, len(visible) - count)]])


def redo(context: FileContext) -> None:
    if undone := context.undone():
        anchor = list(undone)[-1]
        context.anchor(REDO, context.summary(), [entry.id for entry in undone[anchor]], {REDOES: anchor})


def test_redo_brings_what_undo_took_in_its_order(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    context.append(*(said(key, key) for key in "abcde"))
    undo(context, 2)
    undo(context, 1)
    assert texts(context.visible()) == ["a", "b"]
    redo(context)
    assert texts(context.visible()) == texts(again(context).visible()) == ["a", "b", "c"]
    redo(context)
    assert texts(context.visible()) == texts(again(context).visible()) == ["a", "b", "c", "d", "e"]
    assert context.undone() == {}
    undo(context, 1)
    context.append(said("f", "f"))
    assert context.undone() == again(context).undone() == {}
    assert texts(context.visible()) == ["a", "b", "c", "d", "f"]


STEPS = st.lists(st.sampled_from(["say", "undo", "redo", "compact", "reopen"]), max_size=25)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_a_reader_from_the_start_and_one_that_follows_agree(steps: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        context, number = fresh(Path(folder)), 0
        follower = again(context)
        with context.lock("test"):
            for step in steps:
                number += 1
                if step == "say":
                    context.append(said(f"m{number}", str(number)))
                elif step == "undo":
                    undo(context, 1 + number % 3)
                elif step == "redo":
                    redo(context)
                elif step == "compact":
                    context.anchor("compaction", "s", [entry.id for entry in context.visible()[number % 2 :]])
                    context.rotate()
                elif step == "reopen":
                    follower = again(context)
                follower.refresh()
                late = again(context)
                assert texts(context.visible()) == texts(follower.visible()) == texts(late.visible()), (step, steps)
                assert list(context.undone()) == list(late.undone()) == list(follower.undone())
                late.close()
        follower.close()
        context.close()
