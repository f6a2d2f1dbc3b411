"""Budgets: what a prompt, a session and the agents below may use, and what happens when it is used up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.core.turn.support import Ext, MadeTool, Person, World, always

from cru.core.base.config.layers import ConfigError, Layer, merge_layers
from cru.core.base.values.messages import Usage
from cru.core.compose import SETTINGS
from cru.core.events.answers import Answer, Inject
from cru.core.events.payloads import AgentResponded
from cru.core.guard.rules.gate import PermissionReply
from cru.core.turn.parts import EngineSettings
from cru.core.turn.spending import (
    BudgetKind,
    BudgetLimits,
    BudgetSettings,
    ScopeKind,
    UsageLedger,
    UsageTotals,
    format_cost,
)
from cru.core.turn.turn import LegResult

NO, YES = PermissionReply("no"), PermissionReply("once")
ROUND = "usage: input=90 output=10{cost}\ncall: a {{}}\n---\n"


def play(
    tmp_path: Path,
    rounds: int = 9,
    *,
    person: Any = None,
    cost: str = " cost=0.5",
    extensions: tuple[Ext, ...] = (),
    **budget: Any,
) -> tuple[World, LegResult]:
    """Rounds of 100 tokens and half a dollar, each with a new result, and an end."""
    script = ROUND.format(cost=cost) * rounds + "usage: input=1 output=1\ntext: end\n"
    world = World(tmp_path, script, *extensions, asker=person, settings={"budget": budget})
    numbers = iter(range(99))
    world.tools(MadeTool("a", lambda _args: str(next(numbers))))
    return world, world.run("go")


@pytest.mark.parametrize(
    ("budget", "requests", "reason"),
    [
        ({"max_tokens": 250}, 3, "this prompt has used 300 tokens of 250; a new prompt (`go on`) may use as much again, and "
         "`-s budget.max_tokens=N` allows more for one run"),
        ({"max_cost": 1}, 2, "this prompt has cost $1.00 of $1.00; a new prompt"),
        ({"max_seconds": 1e-9}, 0, "this prompt has taken 0 s of 0; a new prompt"),
        ({"session": {"max_tokens": 100}}, 1, "this session has used 100 tokens of 100; a new run begins at 0, and "
         "`-s budget.session.max_tokens=N` allows more for one"),
        ({"max_tokens": 500, "session": {"max_cost": 0.6}}, 2, "this session has cost $1.00 of $0.60"),
    ],
)  # fmt: skip
def test_a_budget_that_is_used_up_halts_the_turn_and_loses_nothing(
    tmp_path: Path, budget: dict[str, Any], requests: int, reason: str
) -> None:
    world, result = play(tmp_path, **budget)
    assert (result.cause, len(world.sent)) == ("halted", requests)
    assert result.reason.startswith(reason)
    assert len(world.results()) == requests and world.log("leg_ended")[-1].metadata["cause"] == "halted"


def test_a_new_prompt_has_a_budget_of_its_own_and_the_session_has_not(tmp_path: Path) -> None:
    world, first = play(tmp_path, max_tokens=200, session={"max_tokens": 300})
    assert (first.cause, len(world.sent)) == ("halted", 2)
    assert world.run("go on").reason.startswith("this session has used 300 tokens of 300") and len(world.sent) == 3
    assert world.run("go on").cause == "halted" and len(world.sent) == 3


@pytest.mark.parametrize(("reply", "requests", "cause"), [(YES, 10, "done"), (NO, 2, "halted")])
def test_a_person_who_is_there_is_asked_for_as_much_again(
    tmp_path: Path, reply: PermissionReply, requests: int, cause: str
) -> None:
    person = Person(reply)
    world, result = play(tmp_path, person=person, max_tokens=200)
    assert (result.cause, len(world.sent)) == (cause, requests)
    whys = [f"this prompt has used {n} tokens of {n}; go on for 200 more?" for n in (200, 400, 600, 800)]
    assert [q.why for q in person.questions] == (whys if cause == "done" else whys[:1])
    assert {(q.tool, q.is_limit) for q in person.questions} == {("budget.max_tokens", True)}


def test_a_price_that_is_not_known_is_told_once_and_with_strict_it_ends_the_turn(tmp_path: Path) -> None:
    world, result = play(tmp_path, cost="", max_cost=1)
    assert (result.cause, len(world.sent)) == ("done", 10)
    [told] = [text for text in world.notices() if "max_cost" in text]
    assert told.startswith("what this model costs is not known, so `max_cost` cannot hold for it: set `[models.")
    (tmp_path / "2").mkdir()
    world, result = play(tmp_path / "2", cost="", max_cost=1, strict=True)
    assert (result.cause, len(world.sent)) == ("halted", 1)
    assert "the price of a request of this prompt is not known, and `budget.strict` is set" in result.reason
    (tmp_path / "3").mkdir()
    person = Person(YES)
    world, result = play(tmp_path / "3", cost="", max_cost=1, strict=True, person=person)
    assert result.cause == "done" and len(person.questions) == 1


def test_own_prices_win_over_what_the_provider_says(tmp_path: Path) -> None:
    models = {f"scripted:{tmp_path / 'script.txt'}": {"input_price": 10_000, "output_price": 10_000}}
    world = World(tmp_path, "usage: input=90 output=10 cost=7\ntext: a\n", settings={"models": models})
    result = world.run("hi")
    assert result.usage.cost == 1.0
    assert world.of(AgentResponded)[0].usage == Usage(90, 10, cost=1.0)


def test_tokens_that_nobody_counted_are_estimated_and_marked(tmp_path: Path) -> None:
    world = World(tmp_path, "text: twelve chars\n")
    totals = world.run("hi").usage
    assert (totals.requests, totals.estimated, totals.unpriced, totals.output) == (1, 1, 1, 3)
    assert totals.input == len(world.sent[0]) // 4 and totals.cost is None
    assert world.of(AgentResponded)[0].usage == Usage(), "an event says what the server counted"
    assert "output_tokens" not in world.log("message")[-1].metadata


def test_a_failed_request_costs_nothing_and_one_that_broke_off_what_came(tmp_path: Path) -> None:
    world = World(tmp_path, "error: 500 x\n---\ntext: 12345678\ndrop:\n")
    assert world.run("a").usage == UsageTotals(requests=1)
    broken = world.run("b").usage
    assert (broken.output, broken.estimated) == (2, 1)


def test_counts_below_zero_take_nothing_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cru.core.models import scripted

    monkeypatch.setattr(scripted._Builder, "_read_usage", lambda _self, _value: Usage(-500, 10, -1, -2, -3.0))
    world = World(tmp_path, "usage: x\ntext: a\n")
    assert world.run("hi").usage == UsageTotals(1, 0, 10, unpriced=1)


def test_continuations_belong_to_the_prompt_that_caused_them(tmp_path: Path) -> None:
    again = Ext([("turn:complete", always(Answer(inject=Inject("more"))))])
    world = World(
        tmp_path, "loop: yes\nby: order\nusage: input=40\ntext: a\n---\nusage: input=40\ntext: b\n", again,
        settings={"budget": {"max_tokens": 100}},
    )  # fmt: skip
    result = world.run("go")
    assert (result.cause, result.usage.input, result.usage.requests) == ("halted", 120, 3)


def ledger(clock: list[float] | None = None, **budget: Any) -> UsageLedger:
    settings = merge_layers(SETTINGS, [Layer("user", {"budget": budget}, "c")]).of(EngineSettings).budget
    return UsageLedger(settings, clock=lambda: (clock or [0.0])[0])


def test_what_agents_below_use_counts_for_all_above_them() -> None:
    parent = ledger(max_tokens=100)
    child = parent.child(BudgetLimits(max_tokens=60))
    grandchild = child.child()
    grandchild.add(Usage(50, 5, cost=0.25))
    assert parent.prompt.totals == parent.session.totals == child.session.totals == UsageTotals(1, 50, 5, cost=0.25)
    assert grandchild.reached() is None
    child.add(Usage(0, 5))
    own = child.reached()
    assert own is not None and (own.scope.kind, own.kind, own.used) == (ScopeKind.TASK, BudgetKind.TOKENS, 60)
    child.extend(own)
    assert child.reached() is None
    parent.add(Usage(40))
    reached = grandchild.reached()
    assert reached is not None and (reached.scope, reached.limit) == (parent.prompt, 100)
    grandchild.extend(reached)
    assert (grandchild.reached(), parent.reached(), parent.prompt.limits.max_tokens) == (None, None, 200)
    grandchild.extend(reached)
    assert parent.prompt.limits.max_tokens == 200, "who was asked meanwhile for the same gives nothing twice"


def test_a_limit_of_cost_above_makes_agents_below_look_up_prices() -> None:
    assert ledger(max_cost=1).child().child().needs_cost and not ledger(max_tokens=1).child().needs_cost
    assert ledger(session={"max_cost": 1}).needs_cost


def test_what_is_far_over_a_limit_may_go_on_after_one_yes() -> None:
    clock = [0.0]
    accounts = ledger(clock, max_seconds=10)
    clock[0] = 35.0
    reached = accounts.reached()
    assert reached is not None and reached.kind is BudgetKind.SECONDS
    accounts.extend(reached)
    assert accounts.prompt.limits.max_seconds == 40 and accounts.reached() is None
    accounts.begin_prompt()
    assert accounts.prompt.limits.max_seconds == 10 and accounts.prompt.began == 35


@pytest.mark.parametrize(
    "budget",
    [
        {"max_cost": -1},
        {"max_tokens": 1.5},
        {"session": {"max_seconds": -1}},
        {"max_costs": 1},
        {"max_cost": float("nan")},
    ],
)
def test_a_budget_that_is_none_is_an_error(budget: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="budget"):
        ledger(**budget)
    assert ledger().reached() is None and BudgetSettings().max_cost == 0


@pytest.mark.parametrize(
    ("dollars", "text"),
    [
        (0, "$0.00"),
        (1.256, "$1.26"),
        (1234.5, "$1,234.50"),
        (0.0312, "$0.031"),
        (0.00031, "$0.00031"),
        (0.00002, "$0.000020"),
    ],
)
def test_a_sum_of_money_has_the_digits_that_it_needs(dollars: float, text: str) -> None:
    assert format_cost(dollars) == text
