"""The index is right whatever happens while it is made: processes that are killed, that work at once, and files that change meanwhile."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.features.vault.support import describe, write_notes

from cru.features.vault.index import index as index_module
from cru.features.vault.index.index import NoteIndex
from cru.features.vault.index.schema import index_file
from cru.features.vault.search.full_text import search
from cru.features.vault.search.query import parse_search

PART = 20


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "_AT_ONCE", PART)


def linked_notes(count: int) -> dict[str, str]:
    """Each links to one that comes before it and to one that comes after it."""
    return {
        f"d{n % 3}/n{n}.md": f"---\ntitle: Note {n}\n---\n# H\n[[Note {n * 7 % count}]] [[n{count - 1 - n}]] [[gone{n % 5}]] #t{n % 4}"
        for n in range(count)
    }


def is_right(root: Path, index: NoteIndex, elsewhere: Path) -> bool:
    """Whether it has what an index has that is made anew, also for a search."""
    new = NoteIndex(root, index_file(elsewhere))
    new.update()
    try:
        return describe(new) == describe(index) and found(new) == found(index)
    finally:
        new.close()


def found(index: NoteIndex) -> set[str]:
    return {hit.path for hit in search(index.connection, parse_search("h"), limit=1000)}


def in_a_process(work: Callable[[], object]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return pid


@pytest.mark.sample(1)
@pytest.mark.parametrize("part", [0, 1, 3, 5])
def test_an_index_whose_maker_was_killed_is_finished_by_the_next(tmp_path: Path, part: int) -> None:
    root, file = tmp_path / "n", index_file(tmp_path / "i")
    write_notes(root, linked_notes(5 * PART))

    def end(done: int, of: int) -> None:
        if done == part * PART:
            os.kill(os.getpid(), signal.SIGKILL)

    assert os.waitpid(in_a_process(lambda: NoteIndex(root, file).update(end)), 0)[1] == signal.SIGKILL
    index = NoteIndex(root, file)
    assert len(index.update().changes) == (5 - part) * PART
    assert is_right(root, index, tmp_path / "new")
    index.close()


def test_links_are_right_if_the_maker_was_killed_when_all_notes_were_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, file = tmp_path / "n", index_file(tmp_path / "i")
    write_notes(root, linked_notes(3 * PART))

    def die(self: NoteIndex) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patched:
        patched.setattr(NoteIndex, "_resolve_left", die)
        assert os.waitpid(in_a_process(lambda: NoteIndex(root, file).update()), 0)[1] == signal.SIGKILL
    index = NoteIndex(root, file)
    (root / "d0/n0.md").write_text("# H")
    assert len(index.update_note("d0/n0.md").changes) == 1, "another process may ask before"
    assert index.update().changes == () and is_right(root, index, tmp_path / "new")
    index.close()


@pytest.mark.slow
def test_processes_that_index_at_once_make_one_index(tmp_path: Path) -> None:
    root, file = tmp_path / "n", index_file(tmp_path / "i")
    write_notes(root, linked_notes(6 * PART))
    pids = [in_a_process(lambda: NoteIndex(root, file).update()) for _ in range(3)]
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0, 0, 0]
    index = NoteIndex(root, file)
    assert index.update().changes == () and is_right(root, index, tmp_path / "new")
    index.close()


def test_an_index_follows_files_that_are_deleted_renamed_and_rewritten_while_it_is_made(tmp_path: Path) -> None:
    root = tmp_path / "n"
    write_notes(root, linked_notes(3 * PART))
    index = NoteIndex(root, index_file(tmp_path / "i"))
    busy = threading.Thread(target=change_files, args=(root, random.Random(7)))
    busy.start()
    looks = 0
    while busy.is_alive() or not looks:
        index.update()
        looks += 1
    busy.join()
    index.update()
    assert is_right(root, index, tmp_path / "new")
    index.close()


def change_files(root: Path, chance: random.Random) -> None:
    for n in range(400):
        change_a_file(root, chance, n)


def change_a_file(root: Path, chance: random.Random, n: int) -> None:
    path = root / f"d{chance.randrange(3)}" / f"n{chance.randrange(60)}.md"
    match chance.randrange(4):
        case 0:
            path.unlink(missing_ok=True)
        case 1 if path.exists():
            path.rename(path.with_name(f"n{chance.randrange(90)}.md"))
        case 2 if path.exists():
            path.write_text(f"---\ntitle: Note {chance.randrange(60)}\n---\n[[n{n}]] # h")
        case _:
            path.write_text(f"# h\n[[Note {n % 60}]] [[d1/n{n % 60}]]")
