"""Compactions that the model does not help with: refusals, cut texts, contexts that stay too large."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.core.turn.support import Ext, MadeTool, always
from tests.core.turn.test_compaction import AUTO, LONG, OLDEST, SUMMARISED, Bare, asked, replies, talk

from cru.core.events.answers import handled
from cru.core.events.payloads import SessionCompacted
from cru.core.turn import NothingToCompact
from cru.core.turn.compaction import find_window
from cru.core.turn.compaction.requests import fitted
from cru.core.turn.parts import ResolvedModel

NO_SUMMARY = {
    "text: I cannot help with that\nend: content_filter\n": "was stopped by a content filter",
    "text: I cannot help with that\nend: refusal\n": "is a refusal",
    "text: they talked ab\nend: length\n": "is cut off",
    "text: they talked ab\nend: safety\n": "ended with `safety`",
    'text: I look first\ncall: ls {"path": "."}\n': "called a tool",
}


@pytest.mark.parametrize("script", NO_SUMMARY)
def test_what_is_no_whole_answer_is_no_summary(tmp_path: Path, script: str) -> None:
    world = Bare(tmp_path, replies(2, more=script))
    talk(world, 2)
    before = world.log()
    with pytest.raises(NothingToCompact, match=NO_SUMMARY[script]):
        asyncio.run(world.session.compact())
    assert world.log() == before and world.built.store.summary() == ""


@pytest.mark.parametrize("script", NO_SUMMARY)
def test_an_automatic_compaction_without_a_whole_answer_changes_nothing(tmp_path: Path, script: str) -> None:
    world = Bare(tmp_path, replies(4, more=f"{script}---\ntext: the answer\n"), settings=AUTO)
    talk(world, 4)
    assert world.run(f"the question {LONG}").response == "the answer"
    assert world.log("anchor") == [] and asked(world)[0] == "question 0"
    [told] = [text for text in world.notices() if text.startswith("not compacted: ")]
    assert NO_SUMMARY[script] in told


@pytest.mark.parametrize("script", NO_SUMMARY)
def test_a_choice_that_is_no_whole_answer_is_no_choice(tmp_path: Path, script: str) -> None:
    said = script.replace("text: ", 'text: ["3", "4", "5", "6"] ')
    world = Bare(
        tmp_path,
        replies(4, more=f"{said}---\ntext: in short\n---\ntext: the answer\n"),
        settings={**AUTO, "compaction_choice": "model"},
    )
    talk(world, 4)
    assert world.run(f"the question {LONG}").response == "the answer"
    assert any(NO_SUMMARY[script] in text for text in world.notices() if "takes the oldest" in text)
    assert "question 0" not in asked(world) and "question 3" in asked(world)


def stuffed(path: Path, script: str, **settings: object) -> Bare:
    """The running prompt alone is larger than the window; each round of it calls a tool."""
    ext = Ext({"context:overflow": always(handled("in short"))})
    world = Bare(path, script, ext, settings={**AUTO, "mode": "trust", **settings})
    talk(world, 2)
    world.session.parts.tools.add(MadeTool("step", lambda args: "done"))
    return world


def test_a_compaction_that_does_not_help_is_not_tried_again_for_this_prompt(tmp_path: Path) -> None:
    more = "call: step {}\n---\n" * 6 + "text: the answer\n---\n" + "text: and so on\n"
    world = stuffed(tmp_path, replies(2, more=more))
    assert world.run("y" * 8000).response == "the answer"
    assert len(world.of(SessionCompacted)) == 1
    [told] = [text for text in world.notices() if "still fills" in text]
    assert "is not compacted again for this prompt" in told
    world.run("next")
    assert len(world.of(SessionCompacted)) == 2  # another prompt, another try, and it helps
    assert len([text for text in world.notices() if "still fills" in text]) == 1


def test_what_the_provider_refuses_is_compacted_once_more(tmp_path: Path) -> None:
    error = "error: 413 maximum context length exceeded\n"
    more = "call: step {}\n---\n" * 6 + f"{error}---\ncall: step {{}}\n---\n{error}"
    world = stuffed(tmp_path, replies(2, more=more))
    result = world.run("y" * 8000)
    assert result.cause == "error" and "context length" in result.error
    assert len(world.of(SessionCompacted)) == 2


def test_a_context_that_shrank_is_compacted_again_when_it_has_grown(tmp_path: Path) -> None:
    world = Bare(tmp_path, replies(20), SUMMARISED, settings=AUTO)
    talk(world, 16)
    assert len(world.of(SessionCompacted)) >= 3
    assert not [text for text in world.notices() if "still fills" in text]


@pytest.mark.parametrize("manual", [True, False])
def test_of_what_is_larger_than_the_window_the_middle_is_left_out(tmp_path: Path, manual: bool) -> None:
    text = f"BEGIN {'x' * 40_000} END"
    script = f"by: order\ntext: one\n---\ntext: {text}\n---\ntext: three\n---\ntext: in short\n---\ntext: the answer\n"
    settings = {**OLDEST, "context_window_limit": 2000, "auto_compact": False}
    world = Bare(tmp_path, script, settings=settings)
    world.run("first", "second", "third")
    if manual:
        asyncio.run(world.session.compact())
        asked_for = world.said()[0][1]
    else:
        world = Bare(
            tmp_path, "by: order\ntext: in short\n---\ntext: the answer\n", settings=settings | {"auto_compact": True}
        )
        assert world.run("fourth").response == "the answer"
        asked_for = world.said(0)[0][1]
    assert len(asked_for) < 2000 * 4 * 0.75
    assert "[USER]: first" in asked_for and "BEGIN xxx" in asked_for and "xxx END" in asked_for
    assert " characters left out here …]" in asked_for
    assert world.built.store.summary() == "in short"


def test_only_the_longest_texts_lose_something() -> None:
    assert fitted(["ab", "cd"], 10) == ["ab", "cd"] and fitted([], 0) == []
    short, long, longer = fitted(["ab", "x" * 100, "y" * 200], 62)
    assert short == "ab"
    assert long == f"{'x' * 15}\n[… 70 characters left out here …]\n{'x' * 15}"
    assert longer == f"{'y' * 15}\n[… 170 characters left out here …]\n{'y' * 15}"
    assert fitted(["abc"], -5) == ["\n[… 3 characters left out here …]\n"]


TOO_LONG = "error: 413 maximum context length exceeded\n"


def overflowing(path: Path, refusals: int, turns: int, **settings: object) -> Bare:
    """A conversation whose summary the server refuses so many times as too long."""
    more = f"{TOO_LONG}---\n" * refusals + "text: in short\n---\ntext: the answer\n"
    world = Bare(path, replies(turns, more=more), settings=settings)
    talk(world, turns)
    return world


@pytest.mark.parametrize("window", [0, 100_000])
def test_of_a_conversation_too_long_for_one_summary_the_oldest_part_goes(tmp_path: Path, window: int) -> None:
    world = overflowing(tmp_path, 1, 5, context_window_limit=window)
    asyncio.run(world.session.compact())
    [done] = world.of(SessionCompacted)
    assert (done.archived, done.messages, done.trigger) == (
        6,
        4,
        "manual",
    ) and world.built.store.summary() == "in short"
    assert [text for text in world.notices() if "its oldest part is summarised" in text]
    assert world.run("and then").response == "the answer"
    assert "question 0" not in asked(world) and "question 4" in asked(world)


@pytest.mark.parametrize(("refusals", "share"), [(2, 2), (3, 4), (5, 16)])
def test_a_summary_that_is_refused_again_gets_shorter_texts(tmp_path: Path, refusals: int, share: int) -> None:
    world = overflowing(tmp_path, refusals, 5)
    asyncio.run(world.session.compact())
    oldest, *_, last = [len(request.messages[0].content) for request in world.requests[-refusals:]]
    assert world.built.store.summary() == "in short" and oldest / share < last + 100 < oldest / share + 600


def test_a_short_conversation_with_a_huge_message_is_summarised_without_its_middle(tmp_path: Path) -> None:
    world = Bare(tmp_path, replies(2, more=f"{TOO_LONG}---\ntext: in short\n"))
    world.run("first", f"BEGIN {'x' * 40_000} END")
    asyncio.run(world.session.compact())
    text = world.said()[0][1]
    assert "BEGIN" in text and "END" in text and " characters left out here" in text and len(text) < 25_000
    assert world.built.store.summary() == "in short"


def test_what_is_too_long_in_any_size_changes_nothing_and_names_another_way(tmp_path: Path) -> None:
    world = overflowing(tmp_path, 6, 5)
    before = world.log()
    with pytest.raises(NothingToCompact, match="too long to be summarised") as caught:
        asyncio.run(world.session.compact())
    assert "/compact" not in caught.value.hint and "/clear" in caught.value.hint
    assert world.log() == before


def test_by_default_a_prompt_that_the_server_refuses_as_too_long_is_answered_after_a_compaction(tmp_path: Path) -> None:
    choice = 'text: ["1", "2", "3", "4"]\n'
    more = f"{TOO_LONG}---\n{choice}---\n{TOO_LONG}---\ntext: in short\n---\ntext: the answer\n"
    world = Bare(tmp_path, replies(5, more=more))
    talk(world, 5)
    assert world.run("and then").response == "the answer"
    assert world.built.store.summary() == "in short" and len(world.of(SessionCompacted)) == 1


@pytest.mark.parametrize(
    ("provider", "name", "turns", "settings", "window"),
    [
        ("openai", "gpt-4o", 50, {}, 128_000),
        ("openai", "gpt-4o", 1, {}, 0),  # nothing is looked up for a short conversation
        ("openai", "gpt-4o", 50, {"context_window_limit": 9000}, 9000),
        ("openai", "no-such-model", 50, {}, 0),
        ("ollama", "gpt-4o", 50, {}, 0),
    ],
)
def test_a_window_is_known_from_the_settings_else_from_the_table(
    tmp_path: Path, provider: str, name: str, turns: int, settings: dict[str, int], window: int
) -> None:
    world = Bare(tmp_path, replies(turns), settings=settings)
    talk(world, turns)
    model = cast(Any, SimpleNamespace(provider=provider, name=name))
    assert find_window(world.session.parts, ResolvedModel(model, {})) == window
