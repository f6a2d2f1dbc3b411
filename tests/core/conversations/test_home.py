from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import msgspec
import pytest
from tests.core.conversations.support import Home, run, said, start, texts
from tests.kit.waiting import PATIENCE

from cru.core.conversations import (
    DOCS,
    BadName,
    ContextError,
    ContextHeld,
    ContextSettings,
    NameTaken,
    NoSuchContext,
    TooLong,
    write_error,
)
from cru.core.conversations.store import ContextStore


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def read(home: Home, name: str) -> dict[str, object]:
    return msgspec.json.decode((home.path / name).read_bytes(), type=dict[str, object])


def test_asking_makes_nothing(home: Home) -> None:
    assert home.prepare() == ()
    assert (home.current, home.previous, home.names(), home.reflection) == ("default", None, [], "")
    assert not home.exists("default") and home.status("default") == "none"
    assert not home.path.exists()


def test_switching_is_remembered_with_the_one_before(home: Home) -> None:
    home.open("default").append(said("x"))
    home.switch("a")
    home.switch("b")
    home.switch("b")
    later = Home(home.path)
    assert (later.current, later.previous) == ("b", "a")
    later.switch(later.resolve("-"))
    assert (later.current, later.previous) == ("a", "b")
    assert read(home, "state.json") == {"contexts": ["a", "b"], "current_context": "a"}
    assert read(home, "session.json") == {"implied_context": "a", "previous_context": "b"}
    assert later.names() == ["a", "b", "default"]


def test_a_switch_by_a_program_that_only_knows_state_json_is_noticed(home: Home) -> None:
    home.switch("a")
    (home.path / "state.json").write_text('{"contexts":["a","b"],"current_context":"b"}')
    assert (Home(home.path).current, Home(home.path).previous) == ("b", "a")


def test_two_processes_do_not_drop_each_others_contexts(home: Home) -> None:
    other = Home(home.path)
    assert other.current == "default"
    home.switch("a")
    other.switch("b")
    assert Home(home.path).names() == ["a", "b"]
    assert other.previous == "a"


@pytest.mark.parametrize(
    "name", ["", "a b", "a/b", "..", "ä", "-x", "System", "a.b", "a\n", "x" * 201, "new:", "new:a b", "-", "²", "a\0"]
)
def test_bad_names_are_refused_with_a_hint(home: Home, name: str) -> None:
    with pytest.raises(BadName) as caught:
        home.resolve(name)
    assert caught.value.hint and caught.value.code == 2
    assert not home.path.exists()


def test_new_names_come_from_the_clock_and_are_claimed_at_once(home: Home) -> None:
    names = [home.resolve("new") for _ in range(3)] + [home.resolve("new:fix") for _ in range(2)]
    assert len(set(names)) == 5
    assert all(re.fullmatch(r"(fix_)?\d{8}_\d{6}(_\d+)?", n) for n in names)
    assert home.names() == sorted(names)


_NEW = """
import sys
from pathlib import Path
from cru.core.conversations.home import Home
sys.stdin.readline()
print(Home(Path(sys.argv[1])).resolve("new"))
"""


@pytest.mark.slow
def test_processes_that_ask_at_the_same_moment_get_different_names(home: Home) -> None:
    children = [start(_NEW, home.path) for _ in range(6)]
    names = {child.communicate("go\n", timeout=PATIENCE)[0] for child in children}
    assert len(names) == 6


def test_opening_makes_folder_and_meta_and_keeps_the_session_id(home: Home) -> None:
    context = home.open("desk")
    meta = read(home, "contexts/desk/context_meta.json")
    assert meta["session_id"] == context.session_id and isinstance(meta["created_at"], int) and meta["version"] == 1
    assert (context.folder.stat().st_mode & 0o777) == 0o700
    home.rename("desk", "play")
    assert home.open("play").session_id == context.session_id
    assert home.open("desk").session_id != context.session_id


def test_a_foreign_meta_file_keeps_its_keys(home: Home) -> None:
    home.open("desk")
    path = home.path / "contexts/desk/context_meta.json"
    path.write_text('{"created_at": 5, "last_combined_prompt": "x"}')
    context = home.open("desk")
    meta = read(home, "contexts/desk/context_meta.json")
    assert (meta["created_at"], meta["last_combined_prompt"], meta["session_id"]) == (5, "x", context.session_id)


def test_a_broken_meta_file_is_reported_and_kept(home: Home) -> None:
    home.open("desk")
    path = home.path / "contexts/desk/context_meta.json"
    path.write_text("{")
    context = home.open("desk")
    assert [p.file for p in context.refresh()] == ["context_meta.json"]
    assert path.with_name("context_meta.json.corrupt-1").read_text() == "{"
    assert home.open("desk").session_id == context.session_id


def test_an_open_of_a_named_context_reads_no_state(home: Home) -> None:
    home.path.mkdir()
    (home.path / "state.json").mkdir()
    assert home.open("desk").entries() == []


@pytest.mark.parametrize("text", ["{", "[]", '{"contexts": 5}', '"x"', "\0"])
def test_a_broken_state_is_reported_and_kept_when_it_is_overwritten(home: Home, text: str) -> None:
    home.open("desk")
    for number, current in ((1, "default"), (2, "desk")):  # what session.json remembers still counts
        (home.path / "state.json").write_text(text)
        problems = home.prepare()
        assert [p.file for p in problems] == ["state.json"] and home.current == current
        assert (home.path / "state.json").read_text() == text
        home.switch("desk")
        assert (home.path / f"state.json.corrupt-{number}").read_text() == text
        assert Home(home.path).current == "desk"


def test_names_in_the_state_that_are_no_names_are_ignored(home: Home) -> None:
    home.path.mkdir()
    (home.path / "state.json").write_text('{"contexts":["ok","../x",7],"current_context":"../x"}')
    assert len(home.prepare()) == 1
    assert (home.current, home.names()) == ("default", ["ok"])


def test_the_shape_of_a_newer_chibi_is_kept(home: Home) -> None:
    home.path.mkdir()
    old = {"name": "a", "created_at": 1, "last_activity_at": 2, "destroy_after_seconds_inactive": 0, "destroy_at": 0}
    (home.path / "state.json").write_bytes(msgspec.json.encode({"contexts": [old, {**old, "name": "b"}], "x": 1}))
    (home.path / "session.json").write_text('{"implied_context": "b"}')
    home.open("b")
    assert (home.current, home.previous, home.names()) == ("b", None, ["a", "b"])
    home.switch("c")
    home.rename("b", "z")
    state = msgspec.json.decode((home.path / "state.json").read_bytes())
    assert state["contexts"][:2] == [old, {**old, "name": "z"}] and state["x"] == 1
    assert sorted(state["contexts"][2]) == sorted(old) and state["contexts"][2]["name"] == "c"
    assert "current_context" not in state
    assert read(home, "session.json") == {"implied_context": "c", "previous_context": "z"}


def test_renaming_follows_current_and_previous(home: Home) -> None:
    for name in ("a", "b"):
        home.open(name).append(said(name))
        home.switch(name)
    home.rename("b", "bb")
    home.rename("a", "aa")
    assert (home.current, home.previous, home.names()) == ("bb", "aa", ["aa", "bb"])
    assert texts(home.open("bb").entries()) == ["b"]
    assert home.status("bb") == "none"


def test_renaming_needs_an_old_context_and_a_free_name(home: Home) -> None:
    home.open("weather")
    home.open("b")
    with pytest.raises(NoSuchContext) as caught:
        home.rename("wether", "c")
    assert "weather" in caught.value.hint
    with pytest.raises(NameTaken):
        home.rename("weather", "b")
    with pytest.raises(BadName):
        home.rename("weather", "b c")
    assert home.names() == ["b", "weather"]


def test_a_held_context_is_neither_renamed_nor_deleted(home: Home) -> None:
    context = home.open("a")
    with context.lock("busy"):
        with pytest.raises(ContextHeld):
            home.rename("a", "b")
        with pytest.raises(ContextHeld):
            home.delete("a")
    assert home.names() == ["a"] and home.status("a") == "none"


def test_deleting_falls_back_to_the_previous_context_or_default(home: Home) -> None:
    for name in ("a", "b"):
        home.open(name)
        home.switch(name)
    assert home.delete("b") and home.current == "a"
    assert home.delete("a") and home.current == "default"
    assert not home.delete("a")
    assert list((home.path / "contexts").iterdir()) == [] and home.names() == []
    with pytest.raises(BadName):
        home.resolve("-")


def test_deleting_a_linked_context_removes_the_link_only(home: Home, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    home.open("a")
    (home.path / "contexts" / "b").symlink_to(tmp_path / "elsewhere")
    home.open("b").append(said("x"))
    assert home.names() == ["a", "b"]
    assert home.delete("b") and home.names() == ["a"]
    assert (tmp_path / "elsewhere" / "context.jsonl").exists()


def test_a_file_where_a_folder_must_be_is_a_clear_error(home: Home) -> None:
    home.path.write_text("x")
    for call in (lambda: home.open("a"), lambda: home.switch("a"), lambda: home.names()):
        with pytest.raises(ContextError) as caught:
            call()
        assert caught.value.hint


def test_a_deletion_that_was_killed_is_finished_by_the_next(home: Home) -> None:
    home.open("a")
    left = home.path / "contexts" / ".deleted-1234"
    left.mkdir()
    (left / "context.jsonl").write_text("x")
    assert home.names() == ["a"]
    home.delete("a")
    assert not left.exists()


def test_a_context_in_a_folder_fills_the_port(home: Home) -> None:
    store: ContextStore = home.open("a")
    assert (store.name, store.folder) == ("a", home.path / "contexts" / "a")
    with store.lock("test"):
        store.append(said("x"))
        store.sync()
    assert texts(store.visible()) == ["x"]


def test_texts_are_replaced_whole_and_an_empty_summary_disappears(home: Home) -> None:
    context = home.open("a")
    assert context.read_text("todos.md") == ""
    for name in ("todos.md", "goals.md", "system_prompt.md", "summary.md"):
        context.write_text(name, "ü one")
        context.write_text(name, "ü two")
        assert context.read_text(name) == "ü two"
    context.write_text("summary.md", "")
    context.write_text("summary.md", "")
    context.write_text("todos.md", "")
    assert not (context.folder / "summary.md").exists() and (context.folder / "todos.md").exists()
    for bad in ("../x", "", ".", "a/b"):
        with pytest.raises(Exception, match="not the name of a text"):
            context.read_text(bad)


def test_a_text_that_is_a_link_stays_a_link(home: Home, tmp_path: Path) -> None:
    context = home.open("a")
    (tmp_path / "mine.md").write_text("old")
    (context.folder / "system_prompt.md").symlink_to(tmp_path / "mine.md")
    context.write_text("system_prompt.md", "new")
    assert (tmp_path / "mine.md").read_text() == "new"


def test_the_transcript_holds_what_people_and_the_agent_said(home: Home) -> None:
    context = home.open("desk")
    from cru.core.base.values.messages import Entry

    entries = [
        said("hi"),
        Entry("2", 1, "desk", "user", "hello", role="agent"),
        Entry("3", 1, "desk", "read", "{}", "tool_call"),
        Entry("4", 1, "system", "desk", "secret prompt", role="system"),
    ]
    context.transcript(entries)
    context.transcript([said("more")])
    assert context.read_text("transcript.md") == "[USER]: hi\n\n[ASSISTANT]: hello\n\n[USER]: more\n\n"


def test_the_reflection_has_a_limit_in_bytes(home: Home) -> None:
    home.write_reflection("ä" * 10, 20)
    with pytest.raises(TooLong, match=r"22 bytes.*20"):
        home.write_reflection("ä" * 11, 20)
    assert home.reflection == "ä" * 10
    with pytest.raises(TooLong):
        home.write_reflection("x" * 10001)


def test_every_setting_is_explained() -> None:
    assert set(DOCS) == set(ContextSettings.__struct_fields__)


_HOT = """
import sys
import cru.core.base.values, cru.core.base.values.messages
from pathlib import Path
before = set(sys.modules)
from cru.core.conversations.home import Home
home = Home(Path(sys.argv[1]))
calls = 0
def count(frame, event, arg):
    global calls
    calls += event == "call"
sys.setprofile(count)
context = home.open("desk")
context.refresh()
context.visible()
sys.setprofile(None)
print(calls)
heavy = {"json", "tempfile", "shutil", "subprocess", "random", "hashlib", "logging", "inspect", "asyncio", "dataclasses"}
print(sorted(heavy & (set(sys.modules) - before)))
print(sorted(m for m in sys.modules if m.startswith("cru.core.conversations.")))
"""


def test_opening_a_small_context_does_little_and_loads_little(home: Home) -> None:
    home.open("desk").append(*(said("x" * 100) for _ in range(50)))
    calls, heavy, modules = run(_HOT, home.path).splitlines()
    assert int(calls) < 200  # 88 for its 50 messages when this was written
    assert heavy == "[]"
    assert "cru.core.conversations.rotation" not in modules and "cru.core.conversations.line_file" not in modules


def test_what_merely_looks_like_a_left_over_is_left_alone(home: Home, tmp_path: Path) -> None:
    home.open("a")
    contexts = home.path / "contexts"
    (contexts / ".deleted-file").write_text("x")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").write_text("x")
    (contexts / ".deleted-link").symlink_to(tmp_path / "outside")
    assert home.delete("a") and home.failed_removals == []
    assert [path.name for path in contexts.iterdir()] == [".deleted-file"]
    assert (tmp_path / "outside/file").exists()


def test_what_cannot_be_cleared_away_is_told_and_the_context_is_gone(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    def fails(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    home.open("a")
    monkeypatch.setattr(shutil, "rmtree", fails)
    assert home.delete("a") and home.names() == []
    assert len(home.failed_removals) == 1 and home.failed_removals[0].endswith(
        "could not be removed: Permission denied"
    )


def test_a_name_that_is_listed_without_a_folder_is_not_suggested_for_itself(home: Home) -> None:
    home.switch("one")
    with pytest.raises(NoSuchContext) as caught:
        home.find("one")
    assert "did you mean" not in caught.value.hint


@pytest.mark.parametrize("text", ["5", "{}", '{"from": 1, "to": 2}', '{"from": "a", "to": "../x", "session_id": "s"}'])
def test_a_nonsensical_note_of_a_rename_changes_nothing(home: Home, text: str) -> None:
    home.open("a")
    home.switch("a")
    (home.path / "session.json").write_text(f'{{"implied_context": "a", "renaming": {text}}}')
    assert (Home(home.path).current, home.names()) == ("a", ["a"])
    Home(home.path).switch("b")
    assert Home(home.path).previous == "a"


@pytest.mark.parametrize(
    ("missing", "advice"), [("none/.cru/contexts/main", "choose another home"), ("main/.lock", "renamed meanwhile")]
)
def test_a_home_that_cannot_be_made_is_no_context_that_is_gone(tmp_path: Path, missing: str, advice: str) -> None:
    error = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    assert advice in write_error(tmp_path / missing, error).hint
