from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.core.turn.support import Ext, World, always

from cru.core.base.values.messages import LEG_ENDED
from cru.core.events.answers import add_context, cancel, halt, inject
from cru.core.events.payloads import MessageReceived, SessionStarted, TurnComplete
from cru.core.turn import NothingToResume
from cru.core.turn.unfinished import GO_ON

THREE = "text: first\ncall: ls {}\ncall: ls {}\n---\ncall: ls {}\n---\ntext: the end\n"


def log_file(world: World) -> Path:
    return world.built.store.folder / "context.jsonl"


def recorded(path: Path) -> bytes:
    path.mkdir()
    world = World(path, THREE)
    world.run("do it")
    return log_file(world).read_bytes()


def resumed(path: Path, log: bytes, script: str = "by: order\nloop: yes\ntext: the end\n") -> World:
    """A new process on a log that breaks off somewhere; whatever it asks is answered with a final reply."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    world = World(path, script)
    log_file(world).write_bytes(log)
    return world


def check_whole(world: World) -> None:
    prompts = [e for e in world.log("message") if e.role == "user" and e.metadata.get("source") == "user"]
    assert [e.content for e in prompts] == ["do it"]
    calls = [e.tool_call_id for e in world.log("tool_call")]
    assert sorted(calls) == sorted(e.tool_call_id for e in world.log("tool_result"))
    assert [e.metadata["cause"] for e in world.log(LEG_ENDED)] == ["done"]
    [complete] = world.of(TurnComplete)
    assert complete.response == "the end"
    assert len([e for e in world.log("message") if e.content == "the end"]) == 1


def test_a_leg_cut_after_any_entry_is_finished(tmp_path: Path) -> None:
    lines = recorded(tmp_path / "whole").splitlines(keepends=True)
    assert len(lines) == 11
    for count in range(1, len(lines)):
        world = resumed(tmp_path / "cut", b"".join(lines[:count]))
        assert world.resume().cause == "done", count
        check_whole(world)


def test_a_leg_torn_in_the_middle_of_any_line_is_finished(tmp_path: Path) -> None:
    lines = recorded(tmp_path / "whole").splitlines(keepends=True)
    for count in range(2, len(lines) + 1):
        head, torn = b"".join(lines[: count - 1]), lines[count - 1]
        world = resumed(tmp_path / "cut", head + torn[: len(torn) // 2])
        assert world.resume().cause == "done", count
        check_whole(world)
        assert any("incomplete" in text for text in world.notices())


def test_a_final_reply_without_its_end_goes_straight_to_settling(tmp_path: Path) -> None:
    lines = recorded(tmp_path / "whole").splitlines(keepends=True)
    world = resumed(tmp_path / "cut", b"".join(lines[:-1]))
    result = world.resume()
    assert (result.response, world.sent) == ("the end", [])


@pytest.mark.parametrize("script", ["", "text: done\n"], ids=["empty", "done"])
def test_nothing_to_resume_is_an_error_that_says_so(tmp_path: Path, script: str) -> None:
    world = World(tmp_path, script)
    if script:
        world.run("go")
    with pytest.raises(NothingToResume, match="no unfinished prompt"):
        world.resume()
    assert not world.built.store.is_held
    assert world.of(SessionStarted) == ([] if not script else world.of(SessionStarted)[:1])


def test_a_blocked_prompt_is_not_resumed(tmp_path: Path) -> None:
    world = World(tmp_path, "text: x\n", Ext({"message:received": always(cancel("no"))}))
    world.run("go")
    with pytest.raises(NothingToResume):
        World(tmp_path, "").resume()


def test_a_continuation_that_was_halted_before_it_began_is_not_resumed(tmp_path: Path) -> None:
    ext = Ext({"turn:complete": always(inject("go on")), "injection_pending": always(halt("enough"))})
    assert World(tmp_path, "text: x\n", ext).run("go").cause == "done"
    with pytest.raises(NothingToResume):
        World(tmp_path, "").resume()


def test_an_archived_prompt_is_not_resumed(tmp_path: Path) -> None:
    import asyncio

    world = World(tmp_path, "error: 400 no\n")
    world.run("go")
    asyncio.run(world.session.archive())
    with pytest.raises(NothingToResume):
        world.resume()


def test_after_an_error_the_prompt_is_sent_again_without_being_logged_again(tmp_path: Path) -> None:
    world = World(tmp_path, "error: 400 broken\n---\ntext: fine\n")
    assert world.run("go").cause == "error"
    assert world.resume().response == "fine"
    assert world.said() == [("user", "go")]
    assert len(world.of(MessageReceived)) == 1


def test_a_reply_that_broke_off_is_continued_once(tmp_path: Path) -> None:
    world = World(tmp_path, "by: order\ntext: half a\ndrop:\n---\nerror: 400 again\n---\ntext:  sentence\n")
    assert world.run("go").cause == "error"
    assert world.log("message")[-1].metadata["partial"] == "error"
    again = World(tmp_path, "by: order\nerror: 400 again\n---\ntext: sentence\n")
    assert again.resume().cause == "error"
    assert again.resume().response == "sentence"
    assert again.said() == [("user", "go"), ("assistant", "half a"), ("user", GO_ON)]


def test_a_partial_reply_without_the_legs_end_is_not_taken_for_final(tmp_path: Path) -> None:
    world = World(tmp_path, "text: half a\ndrop:\n")
    world.run("go")
    lines = log_file(world).read_bytes().splitlines(keepends=True)
    again = resumed(tmp_path / "cut", b"".join(lines[:-1]), "by: order\ntext: whole\n")
    assert again.resume().response == "whole"


def test_a_resumed_leg_that_was_never_received_is_received_now_with_its_files(tmp_path: Path) -> None:
    from cru.core.turn.attachments import read_attachment

    below = tmp_path / "below"
    below.mkdir()
    (below / "a.txt").write_text("AAA")
    world = World(tmp_path, "text: fine\n")
    world.session.submit("go", attachments=(read_attachment("a.txt", below),))
    import asyncio

    asyncio.run(world.session.run())
    first = log_file(world).read_bytes().splitlines(keepends=True)[0]
    again = resumed(tmp_path / "cut", first)
    again.resume()
    assert again.said() == world.said()
    assert "AAA" in again.said()[0][1]


def test_a_resumed_session_says_so_and_its_context_reaches_the_model(tmp_path: Path) -> None:
    lines = recorded(tmp_path / "whole").splitlines(keepends=True)
    world = resumed(tmp_path / "cut", b"".join(lines[:2]))
    world.session.parts.bus.registry.on("session:started", always(add_context("it is late")), owner="clock")
    world.resume()
    [started] = world.of(SessionStarted)
    assert (started.resumed, started.source) == (True, "resume")
    assert world.said() == [("user", "do it"), ("user", "it is late")]


def test_a_continuation_that_was_cut_is_resumed_as_one(tmp_path: Path) -> None:
    from cru.core.events.answers import inject

    path = tmp_path / "whole"
    path.mkdir()
    world = World(path, "loop: yes\ntext: said\n", Ext([("turn:complete", always(inject("more")), {"once": True})]))
    world.run("go")
    lines = log_file(world).read_bytes().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if b'"more"' in line)
    again = resumed(tmp_path / "cut", b"".join(lines[: at + 1]))
    again.resume()
    assert [i.stamp.source for i in again.items if i.stamp and isinstance(i.payload, MessageReceived)] == [
        "continuation"
    ]
    assert again.said()[-1] == ("user", "more")


LEFT, UNANSWERED = "the last prompt was not finished", "had no answer; it is not sent"


def told(world: World) -> list[str]:
    return [text for text in world.notices() if LEFT in text or UNANSWERED in text]


def test_a_new_prompt_after_a_kill_says_what_it_leaves_unfinished(tmp_path: Path) -> None:
    lines = recorded(tmp_path / "whole").splitlines(keepends=True)
    for count in range(1, len(lines) + 1):
        world = resumed(tmp_path / "cut", b"".join(lines[:count]))
        world.run("something else", "and more")
        whole = count >= len(lines) - 1  # the final reply is there
        assert len(told(world)) == (0 if whole else 1), count
        assert all("“do it”" in text for text in told(world))
        assert not told(world) or (UNANSWERED in told(world)[0]) is (count <= 2), count


def test_only_the_beginning_of_a_long_prompt_is_named(tmp_path: Path) -> None:
    world = World(tmp_path, "text: x\n")
    world.run("\x1b[2J" + "a b\n" * 100)
    log = log_file(world).read_bytes().splitlines(keepends=True)
    world = resumed(tmp_path / "cut", log[0])
    world.run("next")
    assert f"“{('[2J' + 'a b ' * 15)[:60]}…”" in told(world)[0]


@pytest.mark.parametrize("script", ["text: x\n---\ntext: y\n", "text: half\nerror: 400 no\n---\ntext: y\n"])
def test_a_prompt_that_was_answered_or_cannot_be_is_not_said_to_be_unfinished(tmp_path: Path, script: str) -> None:
    World(tmp_path, script).run("first")
    later = World(tmp_path, "")
    later.run("second")
    assert told(later) == []


def test_resuming_and_blocked_prompts_say_nothing_of_an_unfinished_one(tmp_path: Path) -> None:
    lines = recorded(tmp_path / "whole").splitlines(keepends=True)
    world = resumed(tmp_path / "cut", b"".join(lines[:2]))
    world.resume()
    assert told(world) == []
    blocked = World(tmp_path, "text: x\n---\ntext: y\n", Ext({"message:received": always(cancel("no"))}))
    blocked.run("first", "second")
    assert told(blocked) == []
