"""What one call of a handler in Lua takes: crossings between the languages, and objects of Python."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.core.turn.support import World

from cru.core.api import handlers
from cru.core.events import calling
from cru.core.events.bus import Outcome
from cru.core.events.payloads import Custom, ToolBeforeCall
from cru.core.plugins.lua.convert import Converter
from cru.core.plugins.lua.driver import Driver, HostCallbacks

TIMES = 400
CALL = ToolBeforeCall("bash", {"command": "x" * 900, "timeout": 30, "description": "a call of one kilobyte"}, "call_1")
COUNTED: tuple[tuple[Any, str, str], ...] = (
    (Driver, "_enter", "runs of Lua"),
    (HostCallbacks, "fetch", "calls of Python"),
    (HostCallbacks, "call", "calls of Python"),
    (HostCallbacks, "method", "calls of Python"),
    (HostCallbacks, "read", "calls of Python"),
    (Converter, "release", "releases"),
    (Converter, "results", "results"),
    (Converter, "encode_event", "events as bytes"),
    (Converter, "encode", "values as bytes"),
    (handlers, "event_table", "tables of Python"),
    (handlers, "Context", "contexts of Python"),
    (calling, "_decoder", "answers as JSON"),
)


def counting(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    counts: Counter[str] = Counter()

    def watched(what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            counts[what] += 1
            return function(*args)

        return call

    for owner, name, what in COUNTED:
        monkeypatch.setattr(owner, name, watched(what, getattr(owner, name)))
    return counts


def dispatched(tmp_path: Path, body: str, counts: Counter[str], payload: Any = CALL) -> list[Outcome[Any]]:
    """What becomes of TIMES calls; `counts` holds those alone."""
    plugins = tmp_path / "home" / "plugins"
    plugins.mkdir(parents=True)
    event = "tool:before_call" if payload is CALL else payload.name
    (plugins / "demo.lua").write_text(f'cru.on("{event}", function(ctx, event) {body} end)')
    world = World(tmp_path, "text: fine\n")

    async def main() -> list[Outcome[Any]]:
        await world.asked("hi")
        bus = world.session.parts.bus
        await bus.dispatch(payload)
        counts.clear()
        return [await bus.dispatch(payload) for _ in range(TIMES)]

    return asyncio.run(main())


def test_a_handler_that_reads_crosses_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = counting(monkeypatch)
    dispatched(tmp_path, "seen = event.args.command .. event.name .. event.identifier", counts)
    assert counts.pop("releases") < TIMES / 10
    assert counts == {"runs of Lua": TIMES, "events as bytes": TIMES}


def test_a_handler_that_changes_comes_back_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = counting(monkeypatch)
    outcomes = dispatched(tmp_path, "event.args.command = event.args.command .. 'y' return event", counts)
    assert {outcome.payload.args["command"] for outcome in outcomes} == {"x" * 900 + "y"}
    assert counts.pop("releases") < TIMES / 10
    assert counts == {"runs of Lua": TIMES, "events as bytes": TIMES, "results": TIMES}


def test_the_context_is_made_when_it_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = counting(monkeypatch)
    dispatched(tmp_path, "seen = ctx.session_id .. ctx.handler_name", counts)
    assert (counts["contexts of Python"], counts["calls of Python"]) == (TIMES, 2 * TIMES)


def test_the_same_is_seen_as_in_python(tmp_path: Path) -> None:
    source = "table.sort(KEYS) return {context = table.concat(KEYS, ',') .. ' ' .. event.payload.args.timeout .. event.summary}"
    outcomes = dispatched(
        tmp_path, f"KEYS = {{}} for key in pairs(event) do KEYS[#KEYS + 1] = key end {source}", Counter()
    )
    (text,) = outcomes[0].answer.context
    assert text.startswith(
        "args,call_id,env,error,event_type,identifier,is_continuation,kind,name,origin,payload,prompt_file,"
        "summary,timestamp_ms,type,valid 30{"
    )


def test_an_event_of_ones_own_has_its_fields(tmp_path: Path) -> None:
    payload = Custom("demo:event", {"n": 1, "list": [1, 2]})
    outcomes = dispatched(
        tmp_path, "return {context = event.n .. event.list[2] .. event.payload.n}", Counter(), payload
    )
    assert len(outcomes) == TIMES


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("0/0", ""),
        ("1/0", ""),
        ("2^70", ""),
        ("'\\xff'", "surrogate"),
        ("print", "not fit"),
        ("{{1}, {a = {2.5}}}", ""),
    ],
)
def test_what_json_would_change_or_refuse_is_as_before(tmp_path: Path, value: str, error: str) -> None:
    body = f"event.args.extra = {value} return event"
    outcome = dispatched(tmp_path, body, Counter())[0]
    if error:
        assert outcome.payload.args == CALL.args
    else:
        expected = {"{{1}, {a = {2.5}}}": [[1], {"a": [2.5]}], "2^70": 2.0**70}.get(value)
        assert outcome.payload.args == {**CALL.args, "extra": expected}
