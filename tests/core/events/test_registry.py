"""Who listens: registering, order, removal, and what is said about mistakes."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cru.core.events import BadHandler, UnknownEvent
from cru.core.events.catalog import BY_NAME
from cru.core.events.registry import LANES, Handler, HandlerRegistry, find
from cru.core.events.stamp import Event


def nothing(event: Event) -> None:
    return None


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.sampled_from(list(LANES)))))
def test_order_is_priority_then_lane_then_registration(given_: list[tuple[int, Any]]) -> None:
    registry = HandlerRegistry()
    for priority, lane in given_:
        registry.on("tool:called", nothing, owner="p", priority=priority, lane=lane)
    found = registry.by_event.get("tool:called", ())
    expected = sorted(range(len(given_)), key=lambda i: (given_[i][0], LANES[given_[i][1]], i))
    assert [h.id - 1 for h in found] == expected
    assert [h for group in registry.groups.get("tool:called", ()) for h in group] == list(found)
    assert all(len(g) == 1 or g[0].lane != "inline" for g in registry.groups.get("tool:called", ()))


def test_the_default_priority_is_100() -> None:
    registry = HandlerRegistry()
    late = registry.on("tool:called", nothing, owner="p", priority=101)
    usual = registry.on("tool:called", nothing, owner="p")
    early = registry.on("tool:called", nothing, owner="p", priority=99)
    assert [h.id for h in registry.by_event["tool:called"]] == [early, usual, late]


def test_off_removes_once_and_leaves_no_trace() -> None:
    registry = HandlerRegistry()
    one = registry.on("tool:called", nothing, owner="p")
    assert registry.has(one)
    assert registry.off(one)
    assert not registry.off(one)
    assert not registry.has(one)
    assert not registry.by_event
    assert not registry.groups


def test_drop_owner_removes_everything_of_one_owner_and_nothing_else() -> None:
    registry = HandlerRegistry()
    for event in ("tool:called", "turn:complete", "tool:called"):
        registry.on(event, nothing, owner="mine")
    other = registry.on("tool:called", nothing, owner="other")
    assert registry.drop_owner("mine") == 3
    assert registry.drop_owner("mine") == 0
    assert [h.id for h in registry.by_event["tool:called"]] == [other]
    assert "turn:complete" not in registry.by_event


def test_aliases_lead_to_their_row_and_narrow_it() -> None:
    registry = HandlerRegistry()
    registry.on("turn:failed", nothing, owner="p")
    registry.on("compact:before", nothing, owner="p")
    assert registry.by_event["turn:complete"][0].pattern == "error"
    assert registry.by_event["context:overflow"][0].pattern == ""
    assert find("turn:interrupted")[1] == "interrupted"
    with pytest.raises(BadHandler, match="`turn:complete`"):
        registry.on("turn:failed", nothing, owner="p", pattern="done")


@pytest.mark.parametrize(
    ("event", "near"),
    [("tool:before", "tool:before_call"), ("turn:complet", "turn:complete"), ("turn:fail", "turn:failed")],
)
def test_an_unknown_event_names_the_closest(event: str, near: str) -> None:
    with pytest.raises(UnknownEvent) as caught:
        HandlerRegistry().on(event, nothing, owner="p")
    assert f"`{event}`" in caught.value.message
    assert f"`{near}`" in caught.value.hint


def test_an_event_like_no_other_lists_what_there_is() -> None:
    with pytest.raises(UnknownEvent, match=r"known: .*tool:called"):
        HandlerRegistry().on("zzzzzzzz", nothing, owner="p")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"priorty": 5}, "did you mean `priority`"),
        ({"lane": "inlin"}, "did you mean `inline`"),
        ({"scope": "tre"}, "did you mean `tree`"),
        ({"on_error": "explode"}, "known: ask, deny, pass"),
        ({"priority": "high"}, "give a whole number"),
        ({"priority": True}, "give a whole number"),
        ({"limit": -1}, "number of seconds"),
        ({"limit": float("nan")}, "number of seconds"),
        ({"once": 1}, "true or false"),
        ({"pattern": None}, "give a text"),
        ({"pattern": "[z-a]"}, "bad pattern"),
        ({"pattern": "{a,b"}, "not closed"),
        ({"id": 7}, "unknown handler field `id`"),
    ],
)
def test_a_field_that_does_not_fit_is_refused_and_nothing_is_registered(fields: dict[str, Any], told: str) -> None:
    registry = HandlerRegistry()
    with pytest.raises(BadHandler, match=told):
        registry.on("tool:called", nothing, owner="p", **fields)
    assert not registry.by_event


def test_a_handler_needs_an_owner_and_something_to_call() -> None:
    with pytest.raises(BadHandler):
        HandlerRegistry().on("tool:called", nothing, owner="")
    with pytest.raises(BadHandler):
        HandlerRegistry().on("tool:called", "not code", owner="p")  # type: ignore[call-overload]


def test_an_event_that_nothing_fires_yet_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BY_NAME, "note:created", replace(BY_NAME["note:created"], live=False))
    registry = HandlerRegistry()
    registry.on("note:created", nothing, owner="p", where="p.lua:3")
    assert registry.problems == ["p.lua:3: event `note:created` is not available yet"]


@pytest.mark.parametrize(
    ("event", "fields", "told"),
    [
        ("session:started", {"pattern": "x*"}, "nothing that pattern `x*` could match"),
        ("tool:called", {"hold": True}, "only on `agent:responded`"),
        ("tool:called", {"on_error": "deny"}, "cannot be denied"),
        ("session:started", {"pattern": "*"}, ""),
        ("tool:before_call", {"on_error": "deny", "pattern": "bash"}, ""),
        ("agent:responded", {"hold": True}, ""),
    ],
)
def test_what_will_have_no_effect_is_told_when_it_is_registered(event: str, fields: dict[str, Any], told: str) -> None:
    registry = HandlerRegistry()
    registry.on(event, nothing, owner="p", where="p.lua:3", **fields)
    assert len(registry.problems) == bool(told)
    assert told in "".join(registry.problems)


def test_dropping_an_owner_of_many_handlers_makes_each_list_once(monkeypatch: pytest.MonkeyPatch) -> None:
    registry, made = HandlerRegistry(), list[str]()
    for _ in range(50):
        registry.on("tool:before_call", lambda event: None, owner="many")
        registry.on("turn:complete", lambda event: None, owner="other")
    assert len(registry.by_event) == 2

    def cut(handlers: tuple[Handler, ...], key: Any) -> Any:
        made.append(f"{len(handlers)} of {handlers[0].event}")
        return groupby(handlers, key)

    monkeypatch.setattr("cru.core.events.registry.groupby", cut)
    assert registry.drop_owner("many") == 50
    registry.on("tool:before_call", nothing, owner="late")
    registry.on("tool:before_call", nothing, owner="later")
    assert len(registry.by_event) == len(registry.groups) == 2
    assert made == ["2 of tool:before_call"]
