"""The transcript that hooks read: lines that scripts understand, each written once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.kit.closing import closed_later
from tests.kit.home import home
from tests.kit.run import cru
from tests.kit.server import server, text

from cru.core.base.config.layers import PROJECT, USER, Layer
from cru.core.base.values.messages import LEG_ENDED, MESSAGE, RESOLVED, TOOL_CALL, TOOL_RESULT, Entry
from cru.core.conversations.store import FileContext
from cru.core.hooks import HookOptions, merge_options
from cru.core.hooks.dialects.transcript import Transcript, link_path, link_transcript


def entry(
    id: str, kind: str, content: str = "", role: str = "", call: str = "", to: str = "", **metadata: Any
) -> Entry:
    return Entry(id, 1_700_000_000, "x", to, content, kind, role, call, metadata)


def prompt(id: str, said: str, **resolved: Any) -> tuple[Entry, Entry]:
    return (
        entry(id, MESSAGE, said, "user", source="user"),
        entry(f"{id}-r", RESOLVED, resolved.pop("text", ""), ref=id, **resolved),
    )


def spoken(id: str, text: str) -> Entry:
    return entry(id, MESSAGE, text, "agent", model="m", reply=f"reply {id}")


def opened(path: Path) -> tuple[FileContext, Transcript, list[str]]:
    path.mkdir(exist_ok=True)
    store, told = closed_later(FileContext(path)), list[str]()
    return store, Transcript(store, Path("/root-of-it"), told.append), told


def lines(transcript: Transcript) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in transcript().read_bytes().splitlines()]


def test_what_lines_look_like(tmp_path: Path) -> None:
    store, transcript, _ = opened(tmp_path / "c")
    store.append(
        *prompt("p", "hello"), spoken("a", "I look"),
        entry("t", TOOL_CALL, '{"file_path": "a.py"}', call="c1", to="read", reply="reply a"),
        entry("o", TOOL_RESULT, "no such file", call="c1", is_error=True), entry("e", LEG_ENDED, ref="p", cause="done"),
    )  # fmt: skip
    found = lines(transcript)
    assert [(one["type"], one["message"]["role"], one["uuid"], one["parentUuid"]) for one in found] == [
        ("user", "user", "p", None), ("assistant", "assistant", "a", "p"), ("assistant", "assistant", "t", "a"), ("user", "user", "o", "t"),
    ]  # fmt: skip
    assert [one["message"]["content"] for one in found] == [
        "hello",
        [{"type": "text", "text": "I look"}],
        [{"type": "tool_use", "id": "c1", "name": "Read", "input": {"file_path": "/root-of-it/a.py"}}],
        [{"type": "tool_result", "tool_use_id": "c1", "content": "no such file", "is_error": True}],
    ]
    assert found[1]["message"]["id"] == found[2]["message"]["id"] == "reply a"
    assert {(one["sessionId"], one["cwd"], one["timestamp"]) for one in found} == {
        (store.session_id, "/root-of-it", "2023-11-14T22:13:20.000Z")
    }
    assert transcript.path.stat().st_mode & 0o077 == 0


def test_what_a_reply_cost(tmp_path: Path) -> None:
    store, transcript, _ = opened(tmp_path / "c")
    counted: dict[str, Any] = {
        "input_tokens": 100,
        "output_tokens": 7,
        "cache_read_tokens": 60,
        "cache_write_tokens": 30,
    }
    store.append(*prompt("p", "hello"), entry("a", MESSAGE, "x", "agent", **counted), spoken("b", "y"))
    asked, first, second = lines(transcript)
    assert first["message"]["usage"] == {
        "input_tokens": 10, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 30, "output_tokens": 7,
    }  # fmt: skip
    assert "usage" not in asked["message"] and "usage" not in second["message"] and asked["version"]


def test_a_blocked_prompt_was_never_said_and_a_rewritten_one_is_as_it_was_sent(tmp_path: Path) -> None:
    store, transcript, _ = opened(tmp_path / "c")
    store.append(*prompt("p", "secret", blocked=True), *prompt("q", "short", text="long", rewritten=True))
    store.append(
        entry("w", MESSAGE, "waits", "user", source="user"), entry("i", MESSAGE, "by a hook", "user", source="inject")
    )
    assert [(one["message"]["content"], one.get("isMeta", False)) for one in lines(transcript)] == [
        ("long", False), ("by a hook", True),
    ]  # fmt: skip


def test_only_what_is_new_is_written_also_by_another_process(tmp_path: Path) -> None:
    store, transcript, _ = opened(tmp_path / "c")
    everything: list[str] = []
    for number in range(4):
        if number == 2:
            store, transcript, _ = opened(tmp_path / "c")
        store.append(*prompt(f"p{number}", "x"), spoken(f"a{number}", "y"), entry(f"e{number}", LEG_ENDED))
        everything += [f"p{number}", f"a{number}"]
        before = transcript.path.stat().st_ino if number else 0
        for _ in range(2):
            assert [one["uuid"] for one in lines(transcript)] == everything
        assert number == 0 or transcript.path.stat().st_ino == before


def test_a_compaction_loses_no_line(tmp_path: Path) -> None:
    store, transcript, _ = opened(tmp_path / "c")
    store.append(*prompt("p", "x"), spoken("a", "y"))
    lines(transcript)
    store.append(spoken("b", "z"))
    with store.lock("test"):
        store.anchor("compaction", "it was short", ["b"])
        store.rotate()
    store.append(spoken("c", "more"))
    again = opened(tmp_path / "c")[1]
    for one in (transcript, again):
        found = lines(one)
        assert [line["uuid"] for line in found if not line.get("isCompactSummary")] == ["p", "a", "b", "c"]
        assert [line["message"]["content"] for line in found if line.get("isCompactSummary")] == ["it was short"]


def test_a_file_that_is_torn_or_of_something_else_is_written_anew(tmp_path: Path) -> None:
    store, transcript, _ = opened(tmp_path / "c")
    store.append(*prompt("p", "x"), spoken("a", "y"))
    whole = transcript().read_bytes()
    for bad in (whole[:-20], b"", b"\xff\n", b"[]\n", b'{"uuid": "stranger"}\n', whole + b'{"uuid":'):
        transcript.path.write_bytes(bad)
        assert opened(tmp_path / "c")[1]().read_bytes() == whole


def test_hooks_run_although_it_cannot_be_written(tmp_path: Path) -> None:
    store, transcript, told = opened(tmp_path / "c")
    store.append(*prompt("p", "x"))
    transcript.path.mkdir()
    assert transcript() == transcript() == transcript.path
    assert len(told) == 1 and f"{store.session_id}.jsonl cannot be written" in told[0]


def test_it_is_named_by_the_session(tmp_path: Path) -> None:
    store, transcript, _ = opened(tmp_path / "c")
    assert transcript().name == f"{store.session_id}.jsonl"


def test_the_folder_of_a_project_is_named_as_in_claude_code() -> None:
    name = str(link_path(Path("/h/.claude"), Path("/srv/my.app_v2 é"), "s"))
    assert name == "/h/.claude/projects/-srv-my-app-v2--/s.jsonl"


def test_a_link_takes_the_place_of_its_own_kind_only(tmp_path: Path) -> None:
    path, link = tmp_path / "new" / "s.jsonl", link_path(tmp_path / ".claude", Path("/p"), "s")
    assert link_transcript(link, path) == link_transcript(link, path) == ""  # the second time nothing is left to do
    assert link.readlink() == path
    assert {folder.stat().st_mode & 0o777 for folder in (link.parent, link.parent.parent, tmp_path / ".claude")} == {
        0o700
    }
    renamed = tmp_path / "renamed" / "s.jsonl"
    assert link_transcript(link, renamed) == "" and link.readlink() == renamed
    link.unlink()
    link.symlink_to(tmp_path / "elsewhere.jsonl")
    assert "another link" in link_transcript(link, path) and link.readlink() == tmp_path / "elsewhere.jsonl"
    link.unlink()
    link.write_text("of Claude Code")
    assert "a file already" in link_transcript(link, path) and link.read_text() == "of Claude Code"


STOP = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "cat > heard"}]}]}}


@pytest.mark.slow
def test_it_is_linked_where_programs_look_for_it(tmp_path: Path) -> None:
    here = home(tmp_path)
    settings = here.path / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_bytes(msgspec.json.encode(STOP))
    folder = link_path(settings.parent, here.project, "").parent
    with server(text("hello")) as model:
        for is_on in (False, True, True, True):
            here.configure(f'[hooks]\ndialects = ["claude"]\nlink_transcripts = {str(is_on).lower()}\n', model.url)
            done = cru("hi", home=here)
            assert done.code == 0 and "link" not in done.err
            heard = msgspec.json.decode((here.project / "heard").read_bytes())
            link = folder / f"{heard['session_id']}.jsonl"
            assert link.is_symlink() is is_on
            if is_on:
                assert link.resolve() == Path(heard["transcript_path"]) and '"hello"' in link.read_text()
                link.unlink()  # by a person: it comes back with the next run
        link.write_text("of Claude Code")
        done = cru("hi", home=here)
        assert done.code == 0 and "there is a file already" in done.err and link.read_text() == "of Claude Code"


def test_a_project_does_not_say_what_is_written_elsewhere() -> None:
    layers = [
        Layer(name, {"hooks": {"link_transcripts": is_on}}, f"/{name}.toml")
        for name, is_on in ((USER, False), (PROJECT, True))
    ]
    merged = merge_options(HookOptions(link_transcripts=True), layers)
    assert merged.link_transcripts is False and "`hooks.link_transcripts` is ignored" in merged.ignored[0]


@pytest.mark.slow
@pytest.mark.parametrize("prompts", [("hi",), ("hi", "more")])
def test_it_is_complete_at_the_end_of_a_run_whose_hooks_only_hear_its_start(
    tmp_path: Path, prompts: tuple[str, ...]
) -> None:
    here = home(tmp_path)
    settings = here.path / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_bytes(msgspec.json.encode({"hooks": {"SessionStart": STOP["hooks"]["Stop"]}}))
    with server(text("hello")) as model:
        here.configure('[hooks]\ndialects = ["claude"]\n', model.url)
        for prompt in prompts:
            assert cru(prompt, home=here).code == 0
    path = Path(msgspec.json.decode((here.project / "heard").read_bytes())["transcript_path"])
    messages = [msgspec.json.decode(line)["message"] for line in path.read_bytes().splitlines()]
    assert [m["content"] for m in messages if m["role"] == "user"] == list(prompts)
    assert [m["role"] for m in messages] == ["user", "assistant"] * len(prompts)


def test_a_transcript_that_no_hook_was_given_is_not_written(tmp_path: Path) -> None:
    store, transcript, _ = opened(tmp_path)
    store.append(*prompt("m1", "hi"))
    asyncio.run(transcript.close())
    assert not transcript.path.exists()
    transcript()
    store.append(spoken("m2", "hello"))
    asyncio.run(transcript.close())
    assert [line["uuid"] for line in lines(transcript)][-1] == "m2"
