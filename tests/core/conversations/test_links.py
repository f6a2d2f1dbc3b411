"""What cru keeps in a context's folder is never written through a link."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.core.conversations.support import Home, LineFile, fresh, said

from cru.core.conversations import StoreUnwritable
from cru.core.conversations.expiry import set_mark
from cru.core.conversations.inbox import make_message
from cru.core.conversations.store import FileContext


def _send(context: FileContext) -> None:
    Home(context.folder.parent.parent).send(make_message("a", "desk", "c"))


def _take(context: FileContext) -> object:
    with context.inbox() as messages:
        return messages


def _rotate(context: FileContext) -> object:
    context.append(said("a", "a"))
    context.anchor("archive", "", [])
    with context.lock("test"):
        return context.rotate()


USES: list[tuple[str, Callable[[FileContext], object]]] = [
    ("context.jsonl", lambda context: context.append(said("a"))),
    ("todos.md", lambda context: context.write_text("todos.md", "x")),
    ("goals.md", lambda context: context.write_text("goals.md", "x")),
    ("transcript.md", lambda context: context.transcript([said("a")])),
    ("transcript_archive.jsonl", _rotate),
    ("inbox.jsonl", _send),
    ("inbox.jsonl", _take),
    (".inbox.lock", _send),
    ("requests.jsonl", lambda context: LineFile(context.folder / "requests.jsonl").write(b"x\n")),
    ("context_meta.json", lambda context: set_mark(context.folder.parent.parent, context.folder, after=5)),
]


@pytest.mark.parametrize(("name", "use"), USES)
def test_a_link_is_named_and_what_it_leads_to_stays(
    tmp_path: Path, name: str, use: Callable[[FileContext], object]
) -> None:
    context = fresh(tmp_path)
    outside = tmp_path / "outside"
    there = context.folder / name
    before = there.read_bytes() if there.exists() else b'{"from": "a", "to": "desk", "content": "mine"}\n'
    outside.write_bytes(before)
    there.unlink(missing_ok=True)
    there.symlink_to(outside)
    with pytest.raises(StoreUnwritable, match="it is a link") as caught:
        use(context)
    assert f"{there}:" in caught.value.message and "remove the link" in caught.value.hint
    assert outside.read_bytes() == before and there.is_symlink()


def test_a_link_to_nothing_makes_no_file_there(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    (context.folder / "transcript.md").symlink_to(tmp_path / "outside")
    with pytest.raises(StoreUnwritable):
        context.transcript([said("a")])
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize("name", [".lock", ".lock.json"])
def test_links_in_place_of_the_lock_are_replaced(tmp_path: Path, name: str) -> None:
    context = fresh(tmp_path)
    (tmp_path / "outside").write_text("mine")
    (context.folder / name).symlink_to(tmp_path / "outside")
    with context.lock("test"):
        assert (context.folder / name).is_file() and not (context.folder / name).is_symlink()
    assert (tmp_path / "outside").read_text() == "mine"
