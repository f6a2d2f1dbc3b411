"""A pipe or a device in the place of a context's file: an error that names it, and nobody waits."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.core.conversations.support import Home, LineFile, again, fresh, said

from cru.core.conversations import ContextError
from cru.core.conversations.inbox import make_message, read_inbox
from cru.core.conversations.store import FileContext


def _pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def _device(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


def _take_inbox(context: FileContext) -> object:
    with context.inbox() as messages:
        return messages


USES: list[tuple[str, Callable[[FileContext], object]]] = [
    ("context.jsonl", lambda context: context.refresh()),
    ("context.jsonl", lambda context: context.append(said("a"))),
    ("summary.md", lambda context: context.read_text("summary.md")),
    ("transcript_archive.jsonl", lambda context: list(context.everything())),
    ("transcript.md", lambda context: context.transcript([said("a")])),
    ("inbox.jsonl", lambda context: read_inbox(context.folder)[0]),
    ("inbox.jsonl", lambda context: Home(context.folder.parent.parent).send(make_message("a", "desk", "c"))),
    (".inbox.lock", lambda context: Home(context.folder.parent.parent).send(make_message("a", "desk", "c"))),
    ("context_meta.json", again),
    ("context.json", again),
    ("journal.jsonl", lambda context: LineFile(context.folder / "journal.jsonl").write(b"x\n")),
]


@pytest.mark.parametrize("put", [_pipe, _device])
@pytest.mark.parametrize(("name", "use"), USES)
def test_it_is_an_error_that_names_the_file(
    tmp_path: Path, put: Callable[[Path], None], name: str, use: Callable[[FileContext], object]
) -> None:
    context = fresh(tmp_path)
    put(context.folder / name)
    with pytest.raises(ContextError, match=r"not a regular file|it is a link") as caught:
        use(context)
    assert name in str(caught.value)


def test_the_rejected_lines_too(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    (context.folder / "inbox.jsonl").write_bytes(b"nonsense\n")
    _pipe(context.folder / "inbox.rejected.jsonl")
    with pytest.raises(ContextError, match=r"inbox\.rejected\.jsonl"):
        _take_inbox(context)
    assert (context.folder / "inbox.jsonl").read_bytes() == b"nonsense\n"


@pytest.mark.parametrize("name", [".lock", ".lock.json"])
def test_a_lock_file_that_is_a_pipe_keeps_nobody_waiting(tmp_path: Path, name: str) -> None:
    context = fresh(tmp_path)
    _pipe(context.folder / name)
    try:
        with context.lock("test"):
            assert (context.folder / ".lock").is_file()
    except ContextError as error:
        assert ".lock" in str(error)
    with context.lock("test"):
        assert (context.folder / ".lock.json").is_file()


def test_a_state_file_that_is_a_pipe_is_a_problem_and_defaults_hold(tmp_path: Path) -> None:
    home = Home(tmp_path)
    _pipe(tmp_path / "state.json")
    assert [problem.file for problem in home.prepare()] == ["state.json"]
    assert home.current == "default"
