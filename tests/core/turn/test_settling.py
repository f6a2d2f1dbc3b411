from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.core.turn.support import Ext, World, always, once, payload

from cru.core.base.values.messages import LEG_ENDED
from cru.core.events.answers import Answer, Inject, cancel, halt, inject, transform
from cru.core.events.payloads import InjectionPending, MessageReceived, SessionIdle, TurnComplete
from cru.core.events.stamp import Event
from cru.core.turn.turn import LegResult

LOOP = "loop: yes\ntext: said\n"


def both(world: World, *prompts: str) -> LegResult:
    for prompt in prompts:
        world.session.submit(prompt)
    result = asyncio.run(world.session.run())
    assert result is not None
    return result


def prompts(world: World) -> list[str]:
    return [e.content for e in world.log("message") if e.role == "user"]


def ends(world: World) -> list[str]:
    return [e.metadata["cause"] for e in world.log(LEG_ENDED)]


def sources(world: World) -> list[Any]:
    return [i.stamp.source for i in world.items if i.stamp and isinstance(i.payload, MessageReceived)]


CAUSES = [
    ("done", LOOP, {}, "said", ""),
    ("cancelled", LOOP, {"message:received": always(cancel("no"))}, "", ""),
    ("halted", LOOP, {"agent:responded": always(halt("stop"))}, "said", ""),
    ("error", "text: half\nerror: 400 broken\n", {}, "half", "broken"),
]


@pytest.mark.parametrize(("cause", "script", "handlers", "response", "error"), CAUSES)
def test_turn_complete_fires_once_a_leg_with_its_cause(
    tmp_path: Path, cause: str, script: str, handlers: dict[str, Any], response: str, error: str
) -> None:
    world = World(tmp_path, script, Ext(handlers))
    result = world.run("go")
    [complete] = world.of(TurnComplete)
    assert (result.cause, complete.cause, complete.response) == (cause, cause, response)
    assert error in complete.error
    assert complete.ref == world.log("message")[0].id
    assert ends(world) == [cause]


@pytest.mark.parametrize(("cause", "script", "handlers", "_response", "_error"), CAUSES)
def test_an_inject_continues_only_a_leg_that_is_done(
    tmp_path: Path, cause: str, script: str, handlers: dict[str, Any], _response: str, _error: str
) -> None:
    call, fields = once(inject("more"))
    world = World(tmp_path, script, Ext(handlers), Ext([("turn:complete", call, fields)], "again"))
    world.run("go")
    assert (prompts(world) == ["go", "more"]) is (cause == "done")
    assert len(world.of(InjectionPending)) == (1 if cause == "done" else 0)


@pytest.mark.parametrize(("cause", "script", "handlers", "_response", "_error"), CAUSES)
def test_a_queued_prompt_is_the_next_turn_unless_the_leg_was_halted(
    tmp_path: Path, cause: str, script: str, handlers: dict[str, Any], _response: str, _error: str
) -> None:
    world = World(tmp_path, script, Ext(handlers))
    both(world, "one", "two")
    if cause == "halted":
        assert prompts(world) == ["one"]
        assert any("1 queued prompt is dropped: stop" in text for text in world.notices())
    else:
        assert prompts(world) == ["one", "two"]
        assert len(world.of(TurnComplete)) == 2


@pytest.mark.parametrize(("position", "sent"), [("user_prefix", "more\n\ntwo"), ("user_suffix", "two\n\nmore")])
def test_a_queued_prompt_goes_before_a_continuation_and_takes_the_inject_along(
    tmp_path: Path, position: Any, sent: str
) -> None:
    call, fields = once(inject("more", position))
    world = World(tmp_path, LOOP, Ext([("turn:complete", call, fields)]))
    both(world, "one", "two")
    assert prompts(world) == ["one", "two"]
    assert world.said()[-1] == ("user", sent)
    assert [p.is_continuation for p in world.of(InjectionPending)] == [False]


def test_turn_complete_says_how_much_waits_behind_it(tmp_path: Path) -> None:
    world = World(tmp_path, LOOP)
    both(world, "one", "two", "three")
    assert [complete.queued for complete in world.of(TurnComplete)] == [2, 1, 0]


def test_a_prompt_submitted_while_a_leg_runs_has_the_source_queue(tmp_path: Path) -> None:
    world = World(tmp_path, LOOP)
    world.session.parts.bus.registry.on(
        "agent:responded", lambda _e: world.session.submit("later"), owner="face", once=True
    )
    world.run("now")
    assert sources(world) == ["user", "queue"]
    assert len(world.of(SessionIdle)) == 1


def test_a_continuation_is_marked_and_has_an_id_that_says_so(tmp_path: Path) -> None:
    call, fields = once(inject("more"))
    world = World(tmp_path, LOOP, Ext([("turn:complete", call, fields)]))
    world.run("go")
    second = [e for e in world.log("message") if e.role == "user"][1]
    assert second.id.startswith("msg-") and second.metadata["source"] == "continuation"
    marks = [i.stamp.is_continuation for i in world.items if i.stamp and isinstance(i.payload, MessageReceived)]
    assert marks == [False, True]


def test_turn_complete_cancelled_means_no_continuation_but_the_queue_goes_on(tmp_path: Path) -> None:
    ext = Ext([("turn:complete", always(Answer(decision="deny", inject=Inject("more"))))])
    world = World(tmp_path, LOOP, ext)
    both(world, "one", "two")
    assert prompts(world) == ["one", "two"]


def test_injects_gathered_on_the_way_go_before_the_one_of_turn_complete(tmp_path: Path) -> None:
    first, fields = once(inject("from the reply"))
    second, _ = once(inject("from the end"))
    world = World(tmp_path, LOOP, Ext([("agent:responded", first, fields), ("turn:complete", second, fields)]))
    world.run("go")
    assert prompts(world)[1] == "from the reply\n\nfrom the end"


def test_session_idle_fires_once_and_its_inject_counts_against_the_cap(tmp_path: Path) -> None:
    settings = {"max_continuations": 2}
    world = World(tmp_path, LOOP, Ext({"session:idle": always(inject("wake up"))}), settings=settings)
    result = world.run("go")
    assert prompts(world) == ["go", "wake up", "wake up"]
    assert len(world.of(SessionIdle)) == 3
    assert result.cause == "halted" and "2 continuations" in result.reason


def test_session_idle_fires_once_after_continuations_and_errors(tmp_path: Path) -> None:
    call, fields = once(inject("more"))
    world = World(tmp_path, "text: a\n---\nerror: 400 no\n", Ext([("turn:complete", call, fields)]))
    assert world.run("go").cause == "error"
    assert len(world.of(SessionIdle)) == 1


@pytest.mark.parametrize(
    ("settings", "legs", "warning"),
    [
        ({"max_continuations": 3}, 4, "max_continuations"),
        ({"fuel": 2, "max_continuations": 0}, 3, "fuel"),
        ({"fuel": 0, "max_continuations": 5}, 6, "max_continuations"),
    ],
)
def test_continuations_are_limited(tmp_path: Path, settings: dict[str, int], legs: int, warning: str) -> None:
    world = World(tmp_path, LOOP, Ext({"turn:complete": always(inject("more"))}), settings=settings)
    result = world.run("go")
    assert len(world.of(TurnComplete)) == legs
    assert result.cause == "halted" and warning in result.reason
    assert [c.continuations for c in world.of(TurnComplete)] == list(range(legs))


def test_limits_are_those_of_one_prompt(tmp_path: Path) -> None:
    settings = {"max_continuations": 1}
    world = World(tmp_path, LOOP, Ext({"turn:complete": always(inject("more"))}), settings=settings)
    world.run("one", "two")
    assert prompts(world) == ["one", "more", "two", "more"]


@pytest.mark.parametrize(
    ("setting", "event", "value", "batches"),
    [
        (2, "", 0, 2),
        (0, "", 0, 4),
        (5, "leg:started", 1, 1),
        (5, "tool:batch_completed", 0, 1),
        (1, "leg:started", 9, 4),
    ],
)
def test_fuel_counts_tool_batches_and_handlers_may_change_it(
    tmp_path: Path, setting: int, event: str, value: int, batches: int
) -> None:
    ext = Ext({event: always(transform(fuel=value))} if event else {})
    world = World(tmp_path, "call: ls {}\nrepeat: 4\n---\ntext: done\n", ext, settings={"fuel": setting})
    result = world.run("go")
    assert len(world.results()) == batches
    assert result.cause == ("done" if batches == 4 else "halted")
    assert ("fuel" in result.reason) is (batches < 4)


def test_recurse_goes_on_with_the_note_until_the_limit(tmp_path: Path) -> None:
    world = World(
        tmp_path, 'loop: yes\ncall: recurse {"note":"step"}\n---\ntext: ok\n', settings={"max_recursion_depth": 2}
    )
    world.run("go")
    assert [p.rpartition("\n")[2] for p in prompts(world)] == ["go", "step", "step"]
    assert sources(world) == ["user", "recurse", "recurse"]
    assert any("max_recursion_depth" in text for text in world.notices())
    assert [c.recurse for c in world.of(TurnComplete)] == ["step", "step", None]


def test_a_recurse_that_was_refused_does_not_go_on(tmp_path: Path) -> None:
    ext = Ext([("tool:before_call", always(cancel("not now")), {"pattern": "recurse"})])
    world = World(tmp_path, "call: recurse {}\n---\ntext: ok\n", ext)
    world.run("go")
    assert prompts(world) == ["go"]


def test_no_progress_counts_equal_replies_without_a_new_result(tmp_path: Path) -> None:
    script = "text: a\n---\ntext: a\n---\ntext: a\n---\ncall: ls {}\n---\ntext: a\n---\ntext: b\n"
    world = World(tmp_path, script, Ext({"turn:complete": always(inject("more"))}), settings={"max_continuations": 4})
    world.run("go")
    assert [c.no_progress for c in world.of(TurnComplete)] == [0, 1, 2, 0, 0]
    assert sum("no progress" in text for text in world.notices()) == 1


def test_the_model_of_an_inject_holds_for_that_leg(tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("loop: yes\ntext: from the other\n")
    call, fields = once(inject("more", model=f"scripted:{other}"))
    world = World(tmp_path, LOOP, Ext([("turn:complete", call, fields)]))
    world.run("go", "again")
    assert [r.model == str(other) for r in world.requests] == [False, True, False]


def test_context_of_turn_complete_stands_beside_the_next_prompt(tmp_path: Path) -> None:
    call, fields = once(Answer(context=("remember this",)))
    world = World(tmp_path, LOOP, Ext([("turn:complete", call, fields)]))
    world.run("one", "two")
    assert world.said()[-1] == ("user", "two\n\nremember this")


def test_an_event_handler_hears_failed_turns_by_their_alias(tmp_path: Path) -> None:
    heard: list[str] = []

    def note(event: Event) -> None:
        heard.append(payload(event).cause)

    world = World(tmp_path, "error: 400 no\n---\ntext: fine\n", Ext({"turn:failed": note}))
    world.run("one", "two")
    assert heard == ["error"]
