"""A model of a category fails, and the next one answers: in the same round, told, and nothing is done twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.core.turn.support import Ext, Handlers, MadeTool, World, always, payload

from cru.core.base.values.messages import Delta, Text
from cru.core.events.answers import Answer, Inject, cancel, transform
from cru.core.events.payloads import AgentResponded, StreamingDelta
from cru.core.models.protocol import RequestBody
from cru.core.models.scripted import ScriptedModel
from cru.core.turn.round import NO_MEMORY
from cru.core.turn.turn import LegResult

FAILURES = {
    "429": "error: 429 slow down",
    "500": "error: 500 oops",
    "overflow": "error: 400 prompt is too long",
    "credit": "error: 402 no credit",
    "moderation": "error: 403 requires moderation",
    "lost": "drop:",
    "refused": "text: I cannot help\nend: content_filter",
    "refusal": "end: refusal",
}


def chain(
    tmp_path: Path, *scripts: str, handlers: Handlers = (), model: str = "deep", **settings: Any
) -> tuple[World, list[str]]:
    """A session on the category `deep` of these scripted models; their labels."""
    labels = []
    for number, script in enumerate(scripts):
        path = tmp_path / f"m{number}.txt"
        path.write_text(script)
        labels.append(f"scripted:{path}")
    settings = {"categories": {"deep": labels}, "model": model, **settings}
    return World(tmp_path, "text: unused\n", Ext(handlers), settings=settings), labels


def trace(world: World, kind: str) -> list[dict[str, Any]]:
    lines = (world.built.store.folder / "trace.jsonl").read_bytes().splitlines()
    return [line for line in map(msgspec.json.decode, lines) if line["k"] == kind]


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_the_next_model_answers(tmp_path: Path, failure: str) -> None:
    world, (first, second) = chain(tmp_path, failure + "\n", "text: here I am\n")
    result = world.run("hi")
    assert (result.cause, result.response) == ("done", "here I am")
    [told] = trace(world, "fallback")
    assert (told["failed"], told["next"], told["n"], told["category"]) == (first, second, 1, "deep") and told["why"]
    assert [line["category"] for line in trace(world, "request")] == ["deep", "deep"]
    [notice] = [text for text in world.notices() if "answers instead" in text]
    assert notice.startswith(f"{first} failed: ") and f"{second} answers instead (category deep)" in notice
    assert [entry.metadata["model"] for entry in world.log("message") if entry.role == "agent"] == [second]


@pytest.mark.parametrize("failure", ["error: 401 bad key", "error: 404 no such model", "error: 400 bad request"])
def test_mistakes_of_the_configuration_are_no_reason(tmp_path: Path, failure: str) -> None:
    world, _ = chain(tmp_path, failure + "\n", "text: here I am\n")
    assert world.run("hi").cause == "error" and len(world.sent) == 1


def test_a_model_without_a_category_has_nobody_behind_it(tmp_path: Path) -> None:
    world = World(tmp_path, "error: 429 slow down\n---\ntext: no\n", settings={"categories": {"deep": ["x"]}})
    assert world.run("hi").cause == "error" and trace(world, "fallback") == []


@pytest.mark.parametrize("end", ["drop:", "end: content_filter"])
def test_text_that_was_shown_is_said_to_count_no_more_and_is_kept_in_the_trace(tmp_path: Path, end: str) -> None:
    world, (first, _) = chain(tmp_path, f"text: so far\n{end}\n", "text: whole\n")
    assert world.run("hi").response == "whole"
    assert [d.delta for d in world.of(StreamingDelta)] == ["so far", "whole"]
    order = [type(item.payload).__name__ for item in world.items]
    at = next(n for n, item in enumerate(world.items) if "does not count" in getattr(item.payload, "text", ""))
    assert order[:at].count("StreamingDelta") == 1 and f"what {first} has said so far does not count" in str(
        world.items[at]
    )
    assert trace(world, "fallback")[0]["shown"] == "so far"
    assert [e.content for e in world.log("message")] == ["hi", "whole"]
    assert [event.content for event in world.of(AgentResponded)] == ["whole"]


def test_calls_of_a_refused_reply_are_not_run_and_finished_ones_not_again(tmp_path: Path) -> None:
    ran: list[Any] = []
    world, _ = chain(
        tmp_path,
        'call: a {"n": 1}\n---\ncall: a {"n": 2}\nend: content_filter\n',
        'text: unused\n---\ncall: a {"n": 3}\n---\ntext: done\n',
    )

    def work(args: dict[str, Any]) -> str:
        ran.append(args["n"])
        return "ok"

    world.tools(MadeTool("a", work))
    assert world.run("hi").response == "done"
    assert ran == [1, 3]
    assert [line["model"][-6:] for line in trace(world, "request")] == ["m0.txt", "m0.txt", "m1.txt", "m1.txt"]


def test_a_chain_that_is_used_up_ends_with_the_last_error_and_names_all(tmp_path: Path) -> None:
    world, (first, second, _) = chain(tmp_path, "error: 429 slow\n", "drop:\n", "error: 503 down\n")
    result = world.run("hi")
    assert result.cause == "error" and "answered 503: down; before it failed: " in result.error
    assert f"{first} (scripted answered 429: slow)" in result.error and f"{second} (" in result.error
    assert len(trace(world, "fallback")) == 2 and len(world.sent) == 3


def test_models_that_cannot_be_asked_are_left_out_and_told(tmp_path: Path) -> None:
    labels = [f"scripted:{tmp_path / name}" for name in ("m0.txt", "m1.txt")]
    mixed = [labels[0], "gemini:pro", "scripted:/nowhere", labels[0], labels[1]]
    world, _ = chain(tmp_path, "error: 429 slow\n", "text: ok\n", categories={"mixed": mixed}, model="mixed")
    assert world.run("hi").response == "ok"
    assert sum("left out is" in text for text in world.notices()) == 2 and len(world.sent) == 2


def test_every_prompt_begins_at_the_front_and_a_leg_stays_with_who_answers(tmp_path: Path) -> None:
    world, _ = chain(tmp_path, "by: order\nerror: 429 x\n---\ntext: back\n", "by: order\ncall: a {}\n---\ntext: ok\n")
    world.tools(MadeTool("a", lambda _args: "ok"))
    assert [world.run("hi").response, world.run("again").response] == ["ok", "back"]
    assert [line["model"][-6:-4] for line in trace(world, "request")] == ["m0", "m1", "m1", "m0"]


def test_handlers_see_each_model_and_may_refuse_it(tmp_path: Path) -> None:
    seen: list[str] = []

    def look(event: Any) -> Answer | None:
        seen.append(payload(event).model)
        return cancel("not that one") if len(seen) == 2 else None

    world, labels = chain(tmp_path, "error: 429 x\n", "text: ok\n", handlers={"message:before_send": look})
    result = world.run("hi")
    assert (result.cause, result.reason) == ("cancelled", "not that one")
    assert [f"scripted:{name}" for name in seen] == labels and len(world.sent) == 1


def test_a_category_that_a_handler_chooses_falls_back_too(tmp_path: Path) -> None:
    choose = {"message:before_send": always(transform(model="deep"))}
    (tmp_path / "other.txt").write_text("text: the other\n")
    world, _ = chain(
        tmp_path, "error: 429 x\n", "error: 429 y\n", "text: ok\n",
        handlers=choose, model=f"scripted:{tmp_path / 'other.txt'}",
    )  # fmt: skip
    assert world.run("hi").response == "ok" and len(world.sent) == 3


INJECTS: dict[str, dict[str, Any]] = {
    "turn:complete": {"once": True},
    "message:received": {},
    "message:before_send": {},
    "tool:completed": {},
    "session:idle": {"once": True},
}


@pytest.mark.parametrize("model", ["other", "deep"])
@pytest.mark.parametrize("event", INJECTS)
def test_the_model_of_an_inject_answers_it(tmp_path: Path, event: str, model: str) -> None:
    """A model or a category, wherever an inject may be given."""
    handlers = [(event, always(Answer(inject=Inject("more", model=model))), INJECTS[event])]
    (tmp_path / "plain.txt").write_text("by: order\ncall: a {}\n---\ntext: plain\n")
    (tmp_path / "other.txt").write_text("loop: yes\ntext: other\n")
    other = f"scripted:{tmp_path / 'other.txt'}"
    world, _ = chain(
        tmp_path, "error: 429 x\n",
        handlers=handlers,
        model=f"scripted:{tmp_path / 'plain.txt'}",
        models={"other": {"model": other}},
        categories={"deep": [f"scripted:{tmp_path / 'm0.txt'}", other]},
    )  # fmt: skip
    world.tools(MadeTool("a", lambda _args: "ok"))
    assert world.run("hi").response == "other"
    requests = trace(world, "request")
    assert requests[-1]["model"] == str(tmp_path / "other.txt")
    assert any("more" in text for _, text in world.said())


def test_no_memory_is_no_reason_to_ask_another_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world, _ = chain(tmp_path, "text: x\n", "text: ok\n")

    async def stream(_self: ScriptedModel, _body: RequestBody) -> AsyncGenerator[Delta, None]:
        raise MemoryError
        yield Text("")

    monkeypatch.setattr(ScriptedModel, "stream", stream)
    result = world.run("hi")
    assert (result.cause, result.error) == ("error", NO_MEMORY) and trace(world, "fallback") == []


def test_a_summary_is_written_by_the_next_model_too(tmp_path: Path) -> None:
    first = "by: order\ntext: a\n---\ntext: b\n---\nerror: 500 x\n---\ntext: c\nend: content_filter\n"
    world, labels = chain(tmp_path, first, "loop: yes\ntext: the summary\n")
    world.run("one", "two")
    asyncio.run(world.session.compact())
    assert world.built.store.summary() == "the summary"
    world.run("three")
    assert [line["failed"] for line in trace(world, "fallback")] == [labels[0]] * 2


def test_the_model_that_an_inject_beside_a_prompt_names_is_known_when_it_is_resumed(tmp_path: Path) -> None:
    handlers = {"message:received": always(Answer(inject=Inject("more", model="deep")))}
    (tmp_path / "plain.txt").write_text("text: plain\n")
    plain = f"scripted:{tmp_path / 'plain.txt'}"
    world, _ = chain(tmp_path, "by: order\nerror: 401 key\n---\ntext: deep\n", handlers=handlers, model=plain)
    assert world.run("hi").cause == "error"
    world, _ = chain(tmp_path, "text: deep\n", model=plain)
    assert world.resume().response == "deep"


async def to_the_end(world: World) -> LegResult:
    result = await world.asked("go")
    await world.session.close()
    return result


def test_what_a_sub_agent_uses_counts_for_its_prompt_and_its_limits_hold_in_it(tmp_path: Path) -> None:
    used = "usage: input=90 output=10\n"
    call = 'call: task {"agent": "general", "description": "d", "prompt": "p", "model": "kid"}'
    (tmp_path / "kid.txt").write_text(f"{used}call: ls {{}}\n---\n{used}call: ls {{}}\n---\n{used}text: child done\n")
    models = {"kid": {"model": f"scripted:{tmp_path / 'kid.txt'}"}}
    for budget, cause, totals in (({}, "done", (5, 450)), ({"max_tokens": 300}, "halted", (3, 270))):
        where = tmp_path / cause
        where.mkdir()
        world = World(
            where, f"{used}{call}\n---\n{used}text: all done\n",
            settings={"models": models, "budget": budget, "mode": "trust"},
        )  # fmt: skip
        result = asyncio.run(to_the_end(world))
        assert (result.cause, (result.usage.requests, result.usage.input)) == (cause, totals), world.results()
    assert "out of budget: this prompt has used 300 tokens of 300" in world.results()[0]
