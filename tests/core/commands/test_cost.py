"""/cost, and what `cru trace` says of tokens and money."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.core.commands.test_builtin import typed
from tests.core.turn.support import World

from cru.core.commands.cost import NOTHING
from cru.core.records.trace import RecordedTrace
from cru.core.records.usage import describe_cost, describe_tokens, read_requests, requests_of, sum_up
from cru.core.turn.spending import UsageTotals
from cru.faces.cli.trace.command import render_turn

PAID = "usage: input=100 output=10 cache_read=40 cost=0.25\ntext: one\n---\nusage: input=200 output=20 cost=0.5\ntext: two\n"


def test_what_was_used_is_summed_for_the_prompt_the_run_and_the_context(tmp_path: Path) -> None:
    world = World(tmp_path, PAID)
    world.run("a", "b")
    [text] = typed(world, "/cost")
    assert text.splitlines() == [
        "last prompt    1 request, 200 tokens in (0 cached), 20 out, $0.50",
        "this run       2 requests, 300 tokens in (40 cached), 30 out, $0.75",
        "recorded here  2 requests, 300 tokens in (40 cached), 30 out, $0.75",
    ]
    [later] = typed(World(tmp_path, ""), "/cost")
    assert "this run" not in later and later.splitlines()[-1] == text.splitlines()[-1]


def test_nothing_asked_is_said(tmp_path: Path) -> None:
    assert typed(World(tmp_path, PAID), "/cost") == [NOTHING]


def test_a_price_that_is_not_known_is_never_0_and_can_be_set_later(tmp_path: Path) -> None:
    World(tmp_path, "usage: input=1000000\ntext: a\n").run("hi")
    [text] = typed(World(tmp_path, ""), "/cost")
    assert "1000000 tokens in (0 cached), 0 out, cost not known" in text and "$" not in text.partition("a price")[0]
    assert 'a price that is not known can be set: `[models."ID"] input_price`' in text
    own = {f"scripted:{tmp_path / 'script.txt'}": {"input_price": 3, "output_price": 9}}
    [text] = typed(World(tmp_path, "", settings={"models": own}), "/cost")
    assert text.splitlines()[-1].endswith("0 out, $3.00")


def test_each_model_has_a_line_if_there_are_several_and_side_requests_count(tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("usage: input=7 output=1 cost=1\ntext: a\n")
    World(tmp_path, PAID, settings={"model": f"scripted:{tmp_path / 'other.txt'}"}).run("a")
    world = World(tmp_path, "usage: input=1 output=1\ntext: b\n---\nusage: input=1 output=1\ntext: sum\n")
    world.run("b")
    asyncio.run(world.session.compact())
    [text] = typed(world, "/cost")
    lines = text.splitlines()
    assert lines[0].endswith("2 requests, 2 tokens in (0 cached), 2 out, cost not known"), (
        "the compaction belongs to it"
    )
    assert [line.split()[0] for line in lines[3:5]] == [
        f"scripted:{tmp_path / name}" for name in ("other.txt", "script.txt")
    ]
    assert lines[2].endswith("$1.00 and 2 of unknown price")


def test_the_trace_shows_tokens_and_cost_of_each_request_and_of_the_turn(tmp_path: Path) -> None:
    world = World(tmp_path, PAID)
    world.run("a")
    text = render_turn(world.built.store, -1)
    assert "1 request, done; 100 tokens in (40 cached), 10 out, $0.25\n" in text
    assert "stop, 100 tokens in (40 cached), 10 out, $0.25" in text
    with RecordedTrace(world.built.store.folder) as trace:
        lines = trace.lines(trace.turns[0])
    assert sum_up(requests_of(lines)) == UsageTotals(1, 100, 10, 40, cost=0.25)


def test_a_fallback_is_a_line_of_the_trace(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text("error: 429 slow down\n")
    bad, good = (f"scripted:{tmp_path / name}" for name in ("bad.txt", "script.txt"))
    world = World(tmp_path, "text: ok\n", settings={"categories": {"quick": [bad, good]}, "model": "quick"})
    world.run("a")
    text = render_turn(world.built.store, -1)
    assert f"fallback   1: {bad} failed (scripted answered 429: slow down), {good} answers instead" in text
    assert f"1: {bad} (category quick), " in text and "about " in text


def test_records_of_older_versions_and_torn_ones_are_read(tmp_path: Path) -> None:
    """Their cost of 0 meant that it was not known."""
    request = '{{"k":"request","n":{n},"turn":"t","round":1,"provider":"scripted","model":"m","upto":"","spans":[],"tools":"",'
    request += '"parameters":{{}},"sha":"","bytes":1,"time":1.0}}\n'
    reply = '{{"k":"reply","n":{n},"turn":"t","time":1.0,"ms":1,"usage":{{"input":5,"output":1,"cache_read":0,"cache_write":0,"cost":{c}}}'
    reply += ',"reason":"stop","error":""}}\n'
    lines = [text.format(n=n, c=c) for n, c in ((1, 0.0), (2, 0.5)) for text in (request, reply)]
    (tmp_path / "trace.jsonl").write_text("".join(lines) + '{"k":"reply","n":3,"tur\n' + request.format(n=4))
    requests = list(read_requests(tmp_path))
    assert [r.usage.cost if r.usage else "lost" for r in requests] == [None, 0.5, "lost"]
    totals = sum_up(requests)
    assert totals == UsageTotals(3, 10, 2, cost=0.5, unpriced=1)
    assert (describe_tokens(totals), describe_cost(totals)) == (
        "10 tokens in (0 cached), 2 out",
        "$0.50 and 1 of unknown price",
    )


@pytest.mark.parametrize(
    ("totals", "text"),
    [
        (UsageTotals(1), "no cost"),
        (UsageTotals(1, 5, unpriced=1), "cost not known"),
        (UsageTotals(1, 5, cost=0.0), "$0.00"),
    ],
)
def test_no_cost_and_one_that_is_not_known_are_told_apart(totals: UsageTotals, text: str) -> None:
    assert describe_cost(totals) == text
