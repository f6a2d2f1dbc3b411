"""A model without discipline under the disciplines that come with cru: whatever it does, a prompt does not cost without end."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from random import Random

import pytest
from tests.core.turn.support import MadeTool, World

from cru.core.base.values.messages import CallPart, Delta, End, Request, Text
from cru.core.models.protocol import RequestBody
from cru.core.tools.protocol import ToolResult
from cru.core.turn.parts import ResolvedModel

SEED = int(os.environ.get("CRU_TEST_SEED", "0")) or Random().randrange(1, 1 << 31)
MOST_REQUESTS = 40
RUNS = 200
"""For each discipline."""
DISCIPLINES: dict[str, tuple[str, ...]] = {
    "none": (), "todo-enforcer": ("todo-enforcer",), "ralph-loop": ("ralph-loop",), "plan-mode": ("plan-mode",),
    "all": ("todo-enforcer", "ralph-loop", "plan-mode"),
}  # fmt: skip
WAITING = ("todo-enforcer", "ralph-loop")
OPEN_TODO = '{"content": "- [x] read\\n- [ ] write\\n"}'


def call(name: str, arguments: str = "{}") -> tuple[Delta, ...]:
    return (CallPart(0, "", name, arguments),)


ACTIONS: tuple[tuple[Delta, ...], ...] = (
    call("note", '{"text": "a"}'), call("note", '{"text": "b"}'), call("note", '{"text": "c"}'), call("fail"),
    call("update_todos", OPEN_TODO), call("forbidden", '{"n": 1}'), call("forbidden", '{"n": 2}'), call("nothing"),
    call("note", "oops"), call("recurse", '{"note": "on"}'), (*call("note", '{"text": "a"}'), CallPart(1, "", "fail", "{}")),
    (), (Text("- [ ] write"),), (Text("not yet"),), (Text("I go on."),),
)  # fmt: skip
"""What such a model does: calls that give the same again, are refused or fail; nothing at all; words."""


def vary(random: Random) -> tuple[Delta, ...]:
    """Return what such a model does with words that it never said before, and with results that hold a clock."""
    word = "".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=12))
    return random.choice((
        call("run", '{"command": "make test"}'), call("run", f'{{"command": "make {word}"}}'), call("echo", f'{{"text": "{word}"}}'),
        call("update_todos", f'{{"content": "- [x] read\\n- [ ] {word}\\n"}}'), (Text(f"I will look at {word} next."),),
        (Text(f"- [ ] {word}"),), (Text(f"Shall I look at {word}?"),), call("call_user", f'{{"message": "{word}"}}'),
    ))  # fmt: skip


class Undisciplined:
    """A model that does a few of these, at random or round in circles, or that never says the same twice."""

    provider, name, tools_by_default = "test", "undisciplined", True

    def __init__(self) -> None:
        self.begin(Random(0))

    def begin(self, random: Random) -> None:
        self.requests = 0
        self._random = random
        self._habits: Sequence[tuple[Delta, ...]] = random.sample(ACTIONS, random.randint(1, 5))
        self._in_order = random.random() < 0.5
        self._varies = random.random() < 0.5

    def encode(self, request: Request) -> RequestBody:
        return RequestBody((b"{}",))

    async def stream(self, body: RequestBody) -> AsyncIterator[Delta]:
        self.requests += 1
        at = self.requests % len(self._habits) if self._in_order else self._random.randrange(len(self._habits))
        does = vary(self._random) if self._varies and self._random.random() < 0.8 else self._habits[at]
        for delta in does:
            yield delta
        yield End("stop")

    async def close(self) -> None:
        """Nothing is open."""


def world_of(tmp_path: Path, plugins: tuple[str, ...], model: Undisciplined, done: list[str]) -> World:
    config = 'mode = "trust"\npoll_backoff = 0\n[permissions]\ndeny = ["forbidden"]\n'
    for name in plugins:
        config += f"[plugins.{name}]\nenabled = true\n" + ("backoff = 0\n" if name in WAITING else "")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text(config)
    world = World(tmp_path, "text: never asked\n")
    parts = world.session.parts
    parts.tools.add(MadeTool("note", lambda _args: "noted"))
    parts.tools.add(MadeTool("fail", lambda _args: ToolResult("no", is_error=True)))
    parts.tools.add(MadeTool("forbidden", lambda _args: done.append("forbidden")))
    clock = itertools.count()
    parts.tools.add(
        MadeTool("run", lambda _args: f"FAILED test_parser\n1 failed in {next(clock) / 7:.3f}s", kind="shell")
    )
    parts.tools.add(MadeTool("echo", lambda args: str(args["text"]), kind="shell"))

    async def choose(name: str) -> ResolvedModel:
        return ResolvedModel(model, {})

    parts.models.choose = choose
    return world


@pytest.mark.slow
@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_no_prompt_costs_more_than_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, discipline: str) -> None:
    for name in ("fsync", "fdatasync"):  # nobody cuts the power
        monkeypatch.setattr(os, name, lambda _fd: None, raising=False)
    monkeypatch.setattr("cru.core.conversations.log._fdatasync", lambda _fd: None)
    model = Undisciplined()
    costs: dict[int, int] = {}
    done: list[str] = []
    world = world_of(tmp_path, DISCIPLINES[discipline], model, done)

    async def play() -> None:
        for run in range(RUNS):
            model.begin(Random(f"{SEED} {discipline} {run}"))
            world.session.submit("/ralph port it" if "ralph-loop" in DISCIPLINES[discipline] else "go")
            await world.session.run()
            costs[run] = model.requests
            await world.session.archive()
        await world.session.close()

    asyncio.run(play())
    assert {run: cost for run, cost in costs.items() if not 1 <= cost <= MOST_REQUESTS} == {}, f"CRU_TEST_SEED={SEED}"
    assert done == []
    assert max(costs.values()) > MOST_REQUESTS / 4  # such models there were
