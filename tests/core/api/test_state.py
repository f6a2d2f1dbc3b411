"""state, storage, log and notes: what is kept, and what is told."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.core.api.support import Room

from cru.core.api import log, state, storage
from cru.core.api.host import HOST, BadArgument, NamespaceError
from cru.core.events.stream import Notice


def test_state_survives_a_restart_in_the_contexts_folder(tmp_path: Path) -> None:
    Room(tmp_path)(state.set_, "loop", {"active": True, "iteration": 3, "tags": ["a"]})
    again = Room(tmp_path)
    assert again(state.get, "loop") == {"active": True, "iteration": 3, "tags": ["a"]}
    file = tmp_path / "home" / "contexts" / "main" / "plugin-state.json"
    assert json.loads(file.read_text())["loop"]["iteration"] == 3


def test_state_gives_nil_for_what_was_never_set_and_after_clear(tmp_path: Path) -> None:
    room = Room(tmp_path)
    assert room(state.get, "x") is None
    room(state.clear, "x")
    assert not (room.parts.store.folder / "plugin-state.json").exists()
    room(state.set_, "x", False)
    assert room(state.get, "x") is False
    room(state.clear, "x")
    assert room(state.get, "x") is None
    room(state.set_, "y", 1)
    room(state.set_, "y", None)
    assert room(state.get, "y") is None


def test_a_value_of_the_state_is_a_copy(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room(state.set_, "x", {"n": 1})
    room(state.get, "x")["n"] = 2
    assert room(state.get, "x") == {"n": 1}


@pytest.mark.parametrize("value", [print, {"f": print}, float("nan")])
def test_state_refuses_what_is_not_data_and_keeps_what_it_had(tmp_path: Path, value: Any) -> None:
    room = Room(tmp_path)
    room(state.set_, "x", 1)
    with pytest.raises(BadArgument, match=r"cru\.state\.set"):
        room(state.set_, "x", value)
    assert room(state.get, "x") == 1


@pytest.mark.parametrize("key", [None, 1, {}])
def test_state_refuses_a_key_that_is_no_string(tmp_path: Path, key: Any) -> None:
    room = Room(tmp_path)
    for function, args in ((state.set_, (key, 1)), (state.get, (key,)), (state.clear, (key,))):
        with pytest.raises(BadArgument, match="key must be a string"):
            room(function, *args)


@pytest.mark.parametrize("text", ["{broken", "[1]", "null", "\udcff"])
def test_a_corrupt_state_is_kept_aside_and_reported(tmp_path: Path, text: str) -> None:
    room = Room(tmp_path)
    file = room.parts.store.folder / "plugin-state.json"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert room(state.get, "x") is None
    aside = file.with_name("plugin-state.json.corrupt-1")
    assert aside.read_bytes() == text.encode("utf-8", "surrogateescape")
    assert any("plugin-state.json is not understood" in n and str(aside) in n for n in room.notices())
    room(state.set_, "x", 1)
    assert room(state.get, "x") == 1


def test_a_state_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    room = Room(tmp_path)
    (room.parts.store.folder / "plugin-state.json").mkdir()
    with pytest.raises(NamespaceError, match=r"plugin-state\.json"):
        room(state.set_, "x", 1)


def test_writers_of_one_state_lose_nothing(tmp_path: Path) -> None:
    room = Room(tmp_path)

    def write(name: str) -> None:
        HOST.set(room.host)
        for n in range(10):
            state.set_(f"{name}{n}", n)

    threads = [threading.Thread(target=write, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(room(state.get, f"{name}{n}") == n for name in "abc" for n in range(10))


def test_storage_is_kept_for_each_plugin_over_all_contexts(tmp_path: Path) -> None:
    room = Room(tmp_path)
    assert room(storage.set_, "user:1", "name", "Ada") is True
    assert room(storage.set_, "user:2", "name", "Ada") is True
    assert room(storage.set_, "user:2", "age", 36) is True
    again = Room(tmp_path)
    assert again(storage.get, "user:1", "name") == "Ada"
    assert again(storage.list_, "user:2") == {"name": "Ada", "age": "36"}
    assert again(storage.find, "name", "Ada") == ["user:1", "user:2"]
    again.host = again.host_of("other")
    assert again(storage.get, "user:1", "name") is None


def test_storage_forgets_what_is_deleted(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room(storage.set_, "e", "k", "v")
    assert room(storage.delete, "e", "k") is True
    assert room(storage.delete, "e", "k") is False
    assert room(storage.list_, "e") == {}
    assert room(storage.find, "k", "v") == []


@pytest.mark.parametrize("args", [(1, "k", "v"), ("e", None, "v"), ("e", "k", None), ("e", "k", {})])
def test_storage_refuses_what_is_no_text(tmp_path: Path, args: tuple[Any, Any, Any]) -> None:
    with pytest.raises(BadArgument, match=r"cru\.storage\.set"):
        Room(tmp_path)(storage.set_, *args)


def test_storage_refuses_a_plugin_whose_name_is_no_file_name(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.host = room.host_of("../evil")
    with pytest.raises(BadArgument, match="plain name"):
        room(storage.set_, "e", "k", "v")


LEVELS: list[tuple[Any, list[tuple[str, str]]]] = [
    ("info", [("info", "hi")]),
    ("debug", [("info", "debug: hi")]),
    ("WARN", [("warning", "hi")]),
    ("error", [("error", "hi")]),
    ("nonsense", [("info", "hi")]),
    (3, [("warning", "hi")]),
    (5, []),
]


@pytest.mark.parametrize(("level", "told"), LEVELS)
def test_log_reaches_the_faces_with_its_level_and_owner(
    tmp_path: Path, level: Any, told: list[tuple[str, str]]
) -> None:
    room = Room(tmp_path)
    room(log.log, level, "hi")
    mine = [n for n in room.world.of(Notice) if n.owner == "demo"]
    assert [(n.level, n.text) for n in mine] == told


def test_log_shows_values_that_are_no_text(tmp_path: Path) -> None:
    room = Room(tmp_path)
    for value in ({"a": [1]}, None, 1.0):
        room(log.log, "info", value)
    assert room.notices()[-3:] == ['{"a":[1]}', "nil", "1.0"]
    with pytest.raises(BadArgument, match="level"):
        room(log.log, None, "x")


def test_a_toast_is_shown_to_everybody_and_once_if_wanted(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room(log.toast, "done")
    room(log.notify, "copying", log.LEVELS["INFO"], {"progress": {"current": 1, "total": 3}})
    room(log.notify, "bad", "error")
    assert room(log.notify_once, "please update") is True
    assert room(log.notify_once, "please update") is False
    mine = [(n.level, n.text) for n in room.world.of(Notice) if n.owner == "demo"]
    assert mine == [("warning", "done"), ("warning", "copying (1/3)"), ("error", "bad"), ("warning", "please update")]


def test_what_killed_writers_left_is_swept_and_nothing_else(tmp_path: Path) -> None:
    room = Room(tmp_path)
    folder = room.parts.store.folder
    folder.mkdir(parents=True, exist_ok=True)
    left = {
        ".plugin-state.json.123-0a1b2c3d.tmp": 120.0,
        "plugin-state.json.123.0a1b2c3d.tmp": 120.0,
        ".plugin-state.json.124-0a1b2c3d.tmp": 5.0,
        "plugin-state.json.mine.tmp": 120.0,
        ".other.json.123-0a1b2c3d.tmp": 120.0,
    }
    for name, age in left.items():
        (folder / name).write_text("half")
        os.utime(folder / name, (time.time() - age,) * 2)
    room(state.set_, "a", 1)
    assert [name for name in left if (folder / name).exists()] == list(left)[2:]
