from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.core.turn.support import Ext, World, always, once

from cru.core.base.values.messages import Entry
from cru.core.events.answers import Answer, cancel, halt, handled, transform
from cru.core.events.payloads import ContextOverflow, SessionCompacted
from cru.core.turn import NothingToCompact
from cru.core.turn.compaction.units import leaving, offer

OLDEST = {"auto_compact": True, "compaction_choice": "oldest"}
AUTO = {**OLDEST, "context_window_limit": 1000, "auto_compact_threshold": 60.0}
LONG = "x" * 400
SUMMARISED = Ext({"context:overflow": always(handled("the summary"))})


class Bare(World):
    """Without tools in the requests, so that the window is filled by the conversation alone."""

    def __init__(self, path: Path, script: str, *extensions: Any, **more: Any) -> None:
        super().__init__(path, script, *extensions, **more)
        self.session.parts.models.offer_tools = False


def talk(world: World, count: int) -> None:
    for number in range(count):
        world.run(f"question {number} {LONG}")


def replies(count: int, *, more: str = "") -> str:
    return "by: order\n" + "".join(f"text: answer {n}\n---\n" for n in range(count)) + more


def asked(world: World) -> list[str]:
    return [text.split(" x")[0] for role, text in world.said() if role == "user"]


def test_a_manual_compaction_makes_everything_a_summary_and_keeps_every_line(tmp_path: Path) -> None:
    world = Bare(tmp_path, replies(2, more="text: in short\n---\ntext: afterwards\n"))
    talk(world, 2)
    before = [e.id for e in world.log()]
    asyncio.run(world.session.compact())
    assert [e.id for e in world.log() if e.entry_type != "anchor"] == before
    [done] = world.of(SessionCompacted)
    assert (done.summary, done.trigger, done.kept) == ("in short", "manual", 0)
    assert world.run("go on").response == "afterwards"
    assert world.said() == [("user", "go on")]
    assert "--- SUMMARY ---\nin short" in [s.text for s in world.requests[-1].system]
    text = (world.built.store.folder / "transcript.md").read_text()
    assert "question 0" in text and "answer 1" in text


def test_two_messages_are_too_few(tmp_path: Path) -> None:
    world = Bare(tmp_path, replies(1))
    talk(world, 1)
    with pytest.raises(NothingToCompact, match="two messages or fewer"):
        asyncio.run(world.session.compact())


@pytest.mark.parametrize(
    ("script", "handler", "words"),
    [
        ("text: \n", None, "empty summary"),
        ("text: s\n", ("context:overflow", cancel("keep it")), "skipped"),
        ("text: s\n", ("context:overflow", halt("keep it")), "halted: keep it"),
        ("text: s\n", ("message:before_send", cancel("no requests")), "no requests"),
    ],
)
def test_a_manual_compaction_that_fails_changes_nothing(tmp_path: Path, script: str, handler: Any, words: str) -> None:
    world = Bare(tmp_path, replies(2, more=script))
    talk(world, 2)
    if handler is not None:
        world.session.parts.bus.registry.on(handler[0], always(handler[1]), owner="late")
    before = world.log()
    with pytest.raises(NothingToCompact, match=words):
        asyncio.run(world.session.compact())
    assert world.log() == before
    assert not world.built.store.is_held


def test_an_automatic_compaction_between_legs_answers_the_prompt(tmp_path: Path) -> None:
    script = replies(4, more="text: summed up\n---\ntext: the answer\n---\ntext: more\n")
    world = Bare(tmp_path, script, settings=AUTO)
    talk(world, 4)
    result = world.run(f"the question {LONG}")
    assert (result.cause, result.response) == ("done", "the answer")
    assert asked(world)[-1] == "the question" and "question 0" not in asked(world)
    assert any("summed up" in s.text for s in world.requests[-1].system)


def test_a_compaction_in_the_middle_of_a_leg_keeps_the_prompt_and_pairs_calls_with_results(tmp_path: Path) -> None:
    calls = [f'call: bash {{"command":"echo {n} {LONG}"}}\n' for n in range(10)]
    script = "by: order\n" + "".join(f"{a}{b}---\n" for a, b in zip(calls[::2], calls[1::2], strict=True))
    script += "text: finished\n"
    world = Bare(tmp_path, script, SUMMARISED, settings={**AUTO, "mode": "trust"})
    result = world.run("the task")
    assert (result.cause, result.response) == ("done", "finished")
    assert len(world.of(SessionCompacted)) >= 1
    assert world.said()[0] == ("user", "the task")
    ids = [c.id for m in world.requests[-1].messages for c in m.calls]
    assert ids == [m.call_id for m in world.requests[-1].messages if m.role == "tool"] != []
    assert len(world.results()) == 10


def test_a_second_compaction_knows_the_first_summary_and_what_it_kept(tmp_path: Path) -> None:
    world = Bare(tmp_path, replies(14), SUMMARISED, settings=AUTO)
    talk(world, 12)
    assert len(world.of(SessionCompacted)) >= 2
    kept = [set(e.metadata["keep"]) for e in world.log("anchor")]
    prompts = [e.id for e in world.log("message") if e.role == "user"]
    assert prompts[-1] in {e.id for e in world.built.store.visible()}
    assert all(kept)
    assert asked(world)[-1] == "question 11"
    first = asked(world)[0].split()[1]
    assert asked(world) == [f"question {n}" for n in range(int(first), 12)]


def test_the_text_to_summarise_begins_with_the_summary_so_far(tmp_path: Path) -> None:
    script = replies(2, more="text: first summary\n---\ntext: a\n---\ntext: b\n---\ntext: second summary\n")
    world = Bare(tmp_path, script)
    talk(world, 2)
    asyncio.run(world.session.compact())
    world.run("more", "and more")
    asyncio.run(world.session.compact())
    assert world.said()[0][1].startswith("[summary so far]\nfirst summary\n\n[USER]: more")
    assert world.built.store.summary() == "second summary"


@pytest.mark.parametrize("answer", [cancel("not now"), transform(strategy="sideways")])
def test_an_automatic_compaction_that_is_cancelled_or_makes_nothing_lets_the_leg_go_on(
    tmp_path: Path, answer: Answer
) -> None:
    ext = Ext({"context:overflow": always(answer)})
    world = Bare(
        tmp_path, "by: order\n" + "text: fine\n---\n" * 4 + "text: \n---\ntext: the answer\n", ext, settings=AUTO
    )
    talk(world, 4)
    result = world.run(f"the question {LONG}{LONG}")
    assert result.cause == "done" and world.log("anchor") == []
    assert any("unknown strategy" in t for t in world.notices()) is (answer.decision == "none")
    assert any("not compacted" in t for t in world.notices()) is (answer.decision == "none")


def test_a_halt_of_the_compaction_ends_the_turn(tmp_path: Path) -> None:
    world = Bare(tmp_path, replies(5), Ext({"context:overflow": always(halt("too big"))}), settings=AUTO)
    talk(world, 4)
    result = world.run(f"the question {LONG}")
    assert (result.cause, result.reason) == ("halted", "too big")


def test_a_handler_may_change_strategy_and_prompt(tmp_path: Path) -> None:
    call, fields = once(transform(strategy="full", summary_prompt="Be brief."))
    world = Bare(tmp_path, replies(7), Ext([("context:overflow", call, fields)]), settings=AUTO)
    talk(world, 4)
    world.run(f"the question {LONG}")
    assert asked(world) == ["the question"]
    assert [s.text for s in world.requests[-2].system] == ["Be brief."]


def test_a_request_that_the_provider_finds_too_large_is_compacted_and_asked_again(tmp_path: Path) -> None:
    script = replies(
        5, more="error: 413 maximum context length exceeded\n---\ntext: summed up\n---\ntext: the answer\n"
    )
    world = Bare(tmp_path, script, settings=OLDEST)
    talk(world, 5)
    result = world.run("the question")
    assert (result.cause, result.response) == ("done", "the answer")
    assert any("summed up" in s.text for s in world.requests[-1].system)


def test_without_automatic_compaction_a_request_that_is_too_large_is_an_error(tmp_path: Path) -> None:
    world = Bare(tmp_path, replies(5, more="error: 413 maximum context length exceeded\n"))
    talk(world, 5)
    assert world.run("the question").cause == "error"
    assert world.log("anchor") == []


def test_a_section_that_a_handler_added_survives_a_compaction(tmp_path: Path) -> None:
    ext = Ext({"system_prompt:build": always(Answer(context=("house rules",)))})
    world = Bare(tmp_path, replies(8), ext, SUMMARISED, settings=AUTO)
    talk(world, 6)
    assert world.of(SessionCompacted)
    assert all("house rules" in [s.text for s in r.system] for r in world.requests)


def test_a_window_that_fills_up_is_told_to_those_who_want_to_know(tmp_path: Path) -> None:
    world = Bare(tmp_path, replies(5), settings={"context_window_limit": 1000, "warn_threshold_percent": 40.0})
    talk(world, 2)
    assert windows(world) == []
    world.run("y" * 700)
    before, after = windows(world)  # the request, and what its answer made of it
    assert before < after


def test_archiving_lets_the_model_start_from_nothing(tmp_path: Path) -> None:
    world = Bare(tmp_path, replies(4))
    talk(world, 2)
    count = len(world.log())
    asyncio.run(world.session.archive())
    world.run("fresh")
    assert world.said() == [("user", "fresh")]
    assert len(world.log()) > count


def test_the_size_is_that_of_the_request_as_a_handler_sees_it(tmp_path: Path) -> None:
    world = Bare(tmp_path, replies(6), SUMMARISED, settings=AUTO)
    talk(world, 5)
    first = world.of(ContextOverflow)[0]
    assert first.limit == 1000 and first.used >= 600 and first.percent == round(first.used / 10, 1)


@pytest.mark.parametrize("percent", [10.0, 50.0, 90.0, 100.0])
def test_what_is_kept_of_earlier_legs_begins_with_a_prompt(percent: float) -> None:
    entries: list[Entry] = []
    for n in range(6):
        entries.append(Entry(f"p{n}", 1, entry_type="message", role="user"))
        entries.append(Entry(f"c{n}", 1, entry_type="tool_call", tool_call_id=f"{n}", metadata={"reply": f"r{n}"}))
        entries.append(Entry(f"t{n}", 1, entry_type="tool_result", tool_call_id=f"{n}"))
        entries.append(Entry(f"a{n}", 1, entry_type="message", role="agent"))
    offered = offer(entries, percent, "p5")
    assert offered is not None
    gone = leaving(offered)
    assert gone and gone < {e.id for e in entries}
    kept = [e for e in entries if e.id not in gone]
    assert kept[0].id.startswith("p") and "p5" in {e.id for e in kept}
    assert {e.tool_call_id for e in kept if e.entry_type == "tool_call"} == {
        e.tool_call_id for e in kept if e.entry_type == "tool_result"
    }


def windows(world: World) -> list[str]:
    return [text for text in world.notices() if "% of the model's window" in text]


def test_tools_count_as_part_of_what_is_sent(tmp_path: Path) -> None:
    settings = {"context_window_limit": 1000, "warn_threshold_percent": 80.0}
    for world in (World(tmp_path, replies(1), settings=settings), Bare(tmp_path, replies(1), settings=settings)):
        assert world.run("hi").cause == "done"
        assert bool(windows(world)) is (type(world) is World)


def test_what_the_provider_counted_counts_if_it_is_more_than_the_estimate(tmp_path: Path) -> None:
    script = "by: order\nusage: input=700 output=3\ntext: a\n---\ntext: b\n"
    world = Bare(tmp_path, script, settings={"context_window_limit": 1000, "warn_threshold_percent": 70.0})
    world.run("hi")
    world.run("x" * 400)
    after, before, last = windows(world)
    assert "70 %" in after and "80 %" in before and "81 %" in last  # 700, and what came since


def test_what_the_provider_counted_holds_in_the_next_process(tmp_path: Path) -> None:
    settings = {"context_window_limit": 1000, "warn_threshold_percent": 70.0}
    Bare(tmp_path, "by: order\nusage: input=700\ntext: a\n", settings=settings).run("hi")
    later = Bare(tmp_path, "by: order\ntext: b\n", settings=settings)
    later.run("more")
    assert windows(later)


def test_what_the_provider_counted_before_a_compaction_says_nothing_about_what_is_left(tmp_path: Path) -> None:
    script = "by: order\n" + "text: a\n---\n" * 5 + "usage: input=990\ntext: a\n---\n" + "text: a\n---\n" * 2
    world = Bare(tmp_path, script, SUMMARISED, settings=AUTO)
    world.run(*["hi"] * 6)
    assert world.of(SessionCompacted) == []
    world.run("again")
    world.run("and again")
    assert len(world.of(SessionCompacted)) == 1
    assert any(e.metadata.get("input_tokens") for e in world.built.store.visible())
    later = Bare(tmp_path, "by: order\ntext: b\n", SUMMARISED, settings=AUTO)
    assert later.run("once more").response == "b"
    assert later.of(SessionCompacted) == []
