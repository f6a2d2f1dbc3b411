"""Progress is a change of the world, not of the text: which rounds the loop guard counts (docs/decisions/turns.md)."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from random import Random

import pytest

from cru.core.turn.loop_guard import CountedCall, LoopGuard, LoopStep

SEED = int(os.environ.get("CRU_TEST_SEED", "0")) or Random().randrange(1, 1 << 31)
MOST = 40
"""Rounds after the last real change."""
Round = tuple[list[CountedCall] | str, int]
"""The calls of a round, or a final reply; and whether a file changed in it."""
WORDS = ("parser", "window", "needle", "copper", "lantern", "marble", "velvet", "harbour", "thistle", "orchard")


def bash(command: str, result: str) -> CountedCall:
    return CountedCall("bash", command, result, "shell")


def read(path: str, text: str) -> CountedCall:
    return CountedCall("read", path, text, "read")


def write(path: str, text: str) -> CountedCall:
    return CountedCall("write", f"{path} {text}", f"wrote {len(text)} bytes to {path}", "write")


def clock(random: Random) -> str:
    return f"{random.random() * 9:.3f}s at 12:{random.randrange(60):02}:{random.randrange(60):02}"


def word(random: Random) -> str:
    """A word that no one has said before."""
    return "".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=12))


def play(rounds: Iterator[Round]) -> tuple[int, int]:
    """Feed the rounds to a guard: how many there were when it stopped them (or in all), and how many of them after the last change."""
    guard = LoopGuard(15)
    count = since = changes = 0
    for calls, changed in rounds:
        count += 1
        changes += changed
        since = 0 if changed else since + 1
        step = guard.take_reply() if isinstance(calls, str) else guard.take_calls(calls, changes)
        if step is LoopStep.STOP:
            return count, since
    return count, -1


# what makes no progress -----------------------------------------------------------------------------------------------------------

IDLE: dict[str, Callable[[Random], list[CountedCall] | str]] = {
    "a test runner with a clock": lambda random: [bash("make test", f"FAILED test_parser\n1 failed, 41 passed in {clock(random)}")],
    "a clock": lambda random: [bash("date", f"Sun Nov 29 12:{random.randrange(60):02}:01 UTC 2026")],
    "what it says itself": lambda random: [bash(f"echo {(said := word(random))}", said)],
    "files that are missing": lambda random: [bash(f"cat {(name := word(random))}", f"cat: {name}: No such file or directory")],
    "searches that find nothing": lambda random: [CountedCall("grep", word(random), "no matches", "read")],
    "the same file": lambda random: [read("parser.py", "def parse(text): pass")],
    "the same file written again": lambda _random: [write("parser.py", "def parse(text): pass")],
    "an address": lambda random: [bash("python -c 'print(object())'", f"<object object at {hex(random.getrandbits(40))}>")],
    "a temporary path": lambda random: [bash("mktemp", f"/tmp/tmp.{word(random)}")],
    "a hash": lambda random: [bash("make id", f"built {random.getrandbits(160):040x}")],
    "a UUID": lambda random: [bash("uuidgen", "-".join(f"{random.getrandbits(4 * n):0{n}x}" for n in (8, 4, 4, 4, 12)))],
    "new todos, none of them done": lambda random: [CountedCall("update_todos", f"- [ ] {word(random)}", "saved", "memory")],
    "notes": lambda random: [CountedCall("update_goals", word(random), "saved", "memory")],
    "nothing": lambda _random: [],
    "known words in another order": lambda random: [bash("shuf words", " ".join(random.sample(WORDS, len(WORDS))))],
    "a reply that ticks off more and more": lambda random: f"- [x] {word(random)}",
    "words": lambda random: f"I will now look at the {word(random)} of the {word(random)}.",
    "two of them": lambda random: [bash("date", clock(random)), bash(f"echo {(said := word(random))}", said)],
}  # fmt: skip


@pytest.mark.parametrize("what", IDLE)
def test_a_turn_that_changes_nothing_ends(what: str) -> None:
    random = Random(f"{SEED} {what}")
    count, since = play((IDLE[what](random), 0) for _ in range(200))
    assert 0 < since <= MOST, f"{count} rounds, CRU_TEST_SEED={SEED}"


def test_a_thousand_models_that_vary_their_words_end_soon_after_the_last_change() -> None:
    costs = {}
    for run in range(1000):
        random = Random(f"{SEED} {run}")
        habits = random.sample(list(IDLE.values()), random.randint(1, 6))
        changes = [([write(f"{word(random)}.py", word(random))], 1) for _ in range(random.randrange(5))]
        first = [(habit(random), 1) for habit in habits]  # what it finds out at first is new
        rest = ((random.choice(habits)(random), 0) for _ in range(300))
        costs[run] = play(itertools.chain(changes, first, rest))
    late = {run: cost for run, cost in costs.items() if not 0 <= cost[1] <= MOST}
    assert late == {}, f"CRU_TEST_SEED={SEED}"


# what does ------------------------------------------------------------------------------------------------------------------------


def edit_and_test(random: Random) -> Iterator[Round]:
    for name in WORDS:
        yield [read(f"{name}.py", f"def {name}(): ...")], 0
        for attempt in range(random.randint(1, 4)):
            yield [write(f"{name}.py", f"def {name}(): return {attempt}")], 1
            yield [bash("make test", f"{random.randrange(9)} failed, 40 passed in {clock(random)}")], 0


def long_build(random: Random) -> Iterator[Round]:
    yield [bash("make -j8 &", "started task 1")], 0
    for step in range(60):
        name = word(random)
        text = f"[{step * 100 // 60:3}%] Building CXX object src/{name}.o"
        yield [CountedCall("task_output", '{"id": "1"}', text, "flow")], 0


def service(random: Random) -> Iterator[Round]:
    for _ in range(random.randint(5, 30)):
        yield [bash("curl -s localhost/status", f'{{"state": "pending", "age": {random.randrange(999)}}}')], 0
    yield [bash("curl -s localhost/status", '{"state": "ready"}')], 0


def flaky(random: Random) -> Iterator[Round]:
    for name in WORDS:
        for _ in range(random.randint(2, 7)):
            yield [bash(f"pytest tests/{name}", f"1 failed in {clock(random)}")], 0
        yield [bash(f"pytest tests/{name}", f"1 passed in {clock(random)}")], 0
        yield [read(f"tests/test_{name}.py", f"def test_{name}(): wait({name})")], 0
        yield [write(f"tests/test_{name}.py", f"def test_{name}(): {random.random()}")], 1


def bisect(random: Random) -> Iterator[Round]:
    for step in range(12):
        subject = f"{random.choice(WORDS)}: {word(random)} {word(random)}"
        left = f"Bisecting: {4096 >> step} revisions left to test after this (roughly {12 - step} steps)"
        yield (
            [
                bash(
                    f"git bisect {random.choice(('good', 'bad'))}",
                    f"{left}\n[{random.getrandbits(160):040x}] {subject}",
                )
            ],
            0,
        )
        yield [bash("make test", f"{random.choice(('1 failed', '41 passed'))} in {clock(random)}")], 0


def many_renames(random: Random) -> Iterator[Round]:
    for number in range(60):
        yield (
            [bash(f"sed -i s/old/new/ {word(random)}.py", "")],
            number % 3 == 0,
        )  # what changed is known a little later


def tour(random: Random) -> Iterator[Round]:
    for _ in range(80):
        name = word(random)
        yield [read(f"{name}.py", f"class {name.title()}:\n    {word(random)} = {word(random)}")], 0


def suites_one_by_one(random: Random) -> Iterator[Round]:
    for _ in range(30):
        yield [bash(f"pytest tests/test_{word(random)}.py", f"12 passed in {clock(random)}")], 0


def server_calls(random: Random) -> Iterator[Round]:
    for number in range(60):
        yield [CountedCall("mcp_tracker_create", f'{{"title": "{word(random)}"}}', f"created #{number}", "tool")], 0


def checklist(random: Random) -> Iterator[Round]:
    done: list[str] = []
    for _ in range(30):
        done.append(word(random))
        yield [CountedCall("update_todos", "\n".join(f"- [x] {item}" for item in done), "saved", "memory")], 0


PRODUCTIVE = (
    edit_and_test, long_build, service, flaky, bisect, many_renames, tour, suites_one_by_one, server_calls, checklist,
)  # fmt: skip


@pytest.mark.parametrize("work", PRODUCTIVE, ids=lambda work: work.__name__)
def test_work_is_never_stopped(work: Callable[[Random], Iterator[Round]]) -> None:
    stopped = {run: cost for run in range(20) if (cost := play(work(Random(f"{SEED} {run}"))))[1] != -1}
    assert stopped == {}, f"CRU_TEST_SEED={SEED}"


def test_a_list_of_blank_lines_costs_no_time() -> None:
    guard = LoopGuard(15)
    assert (
        guard.take_calls([CountedCall("update_todos", "- [ ] a" + "\n" * 400_000 + "x", "saved", "memory")])
        is LoopStep.GO_ON
    )


# polling --------------------------------------------------------------------------------------------------------------------------


def test_equal_polls_come_further_and_further_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("cru.core.turn.loop_guard.monotonic", lambda: now[0])
    guard = LoopGuard(15, 30)
    waits = []
    for age in range(9):
        guard.take_calls([bash("curl localhost", f"pending for {age} s")])
        waits.append(guard.wait)
        now[0] += guard.wait
    assert waits == [0, 0, 2, 4, 8, 16, 30, 30, 30]
    now[0] += 12  # a slow reply is a part of the time between two polls
    guard.take_calls([bash("curl localhost", "pending for 99 s")])
    assert guard.wait == 18
    guard.take_calls([bash("curl localhost", "ready")])
    assert guard.wait == 0


@pytest.mark.parametrize(
    "call",
    [
        write("a", "1 s"), CountedCall("mcp_x_y", "{}", "1 s", "tool"), CountedCall("task", "{}", "1 s", "flow"),
    ],
    ids=lambda call: call.name,
)  # fmt: skip
def test_what_may_do_something_is_not_slowed_down(call: CountedCall) -> None:
    guard = LoopGuard(15, 30)
    for age in range(9):
        guard.take_calls([call._replace(result=f"{age} s")])
        assert guard.wait == 0


@pytest.mark.parametrize(("most", "rounds"), [(1, 1), (3, 3), (5, 5), (15, 15), (40, 40)])
def test_the_setting_is_the_number_of_rounds(most: int, rounds: int) -> None:
    guard = LoopGuard(most)
    steps = [guard.take_calls([]) for _ in range(rounds)]
    assert steps[-1] is LoopStep.STOP and LoopStep.STOP not in steps[:-1]
    assert guard.rounds == rounds
