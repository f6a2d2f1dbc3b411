from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest
from tests.core.conversations.support import DATA, Home, again, said, texts

from cru.core.conversations import MigrationFailed


@pytest.fixture
def home(tmp_path: Path) -> Home:
    shutil.copytree(DATA / "old", tmp_path / "home")
    return Home(tmp_path / "home")


def test_an_old_context_becomes_a_log_and_the_old_file_stays(home: Home) -> None:
    folder = home.path / "contexts" / "coffee"
    old = (folder / "context.json").read_bytes()
    context = home.open("coffee")
    assert context.refresh() == ()
    assert [(e.from_, e.to, e.role, e.content, e.timestamp) for e in context.entries()] == [
        ("system", "coffee", "system", "You are kind.", 1700000000),
        ("user", "coffee", "user", "hello", 1700000000),
        ("coffee", "user", "agent", "hi there ☕", 1700000000),
        ("coffee", "user", "agent", "", 1700000000),
    ]
    assert context.entries()[1].id == "11111111-1111-4111-8111-111111111111"
    assert len({e.id for e in context.entries()}) == 4
    assert (folder / "context.json.migrated").read_bytes() == old and not (folder / "context.json").exists()
    context.append(said("more"))
    assert len(home.open("coffee").entries()) == 5


def test_a_migration_killed_before_its_last_step_is_finished(home: Home) -> None:
    folder = home.path / "contexts" / "coffee"
    context = home.open("coffee")
    context.append(said("more"))
    (folder / "context.json.migrated").rename(folder / "context.json")
    later = again(context)
    assert later.refresh() == () and later.entries() == context.entries()
    assert not (folder / "context.json").exists()


def test_a_second_old_file_beside_another_conversation_is_named_and_left(home: Home) -> None:
    folder = home.path / "contexts" / "coffee"
    context = home.open("coffee")
    other = {"name": "x", "messages": [{"role": "user", "content": "other"}], "created_at": 1, "updated_at": 2}
    (folder / "context.json").write_bytes(msgspec.json.encode(other))
    later = again(context)
    assert [(p.file, p.line) for p in later.refresh()] == [("context.json", 0)]
    assert texts(later.entries()) == texts(context.entries()) and (folder / "context.json").exists()


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"messages": 5}', b'{"messages": [{"content": "x"}]}', b"\xff"])
def test_a_broken_old_file_is_an_error_and_untouched(home: Home, data: bytes) -> None:
    folder = home.path / "contexts" / "coffee"
    (folder / "context.json").write_bytes(data)
    with pytest.raises(MigrationFailed) as caught:
        home.open("coffee")
    assert "mv " in caught.value.hint
    assert (folder / "context.json").read_bytes() == data and not (folder / "context.jsonl").exists()
