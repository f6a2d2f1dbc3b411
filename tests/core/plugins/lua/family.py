"""A family of names, as the namespace has them."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

from cru.core.api.host import BadArgument, Object, Values, call
from cru.core.api.names import AbsentAnswer

WHO: ContextVar[str] = ContextVar("who", default="nobody")
LEVELS = {"INFO": 2}


async def get(url: str, options: dict[str, Any] | None = None) -> dict[str, Any]:
    await asyncio.sleep(0.005)
    return {"status": 200, "body": url, "options": options}


async def forever() -> None:
    await asyncio.sleep(60)


async def sleep(seconds: float) -> float:
    await asyncio.sleep(seconds)
    return seconds


def read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def pair() -> Values:
    return Values((None, "no host"))


def who() -> str:
    return WHO.get()


def log(level: str, message: str) -> str:
    return f"{level}: {message}"


def bad() -> None:
    raise BadArgument("that will not do", "give a number")


def bug() -> None:
    raise KeyError("inner")


def interrupt() -> None:
    raise KeyboardInterrupt


async def twice(function: Any) -> Any:
    return [await call(function, 1), await call(function, 2)]


def kind(value: Any) -> str:
    return type(value).__name__


class Answer(Object):
    METHODS = ("text", "wait", "add")
    FIELDS = ("header", "mood")

    def __init__(self, header: str) -> None:
        self.header = header
        self.secret = "hidden"

    @property
    def mood(self) -> str:
        return self.secret

    @mood.setter
    def mood(self, value: str) -> None:
        self.secret = value

    def text(self, prefix: str) -> str:
        return prefix + self.header

    async def wait(self) -> str:
        await asyncio.sleep(0)
        return "waited"

    def add(self, other: Answer) -> Answer:
        return Answer(self.header + other.header)


class Dial(Object):
    METHODS = ("half",)
    FIELDS = ("heat",)

    def __init__(self) -> None:
        object.__setattr__(self, "_heat", 0)

    def __getattr__(self, name: str) -> Any:
        if name != "heat":
            raise BadArgument(f"no such knob: {name}")
        return object.__getattribute__(self, "_heat")

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "heat":
            raise BadArgument(f"no such knob: {name}")
        object.__setattr__(self, "_heat", value)

    def half(self) -> Any:
        return self.heat // 2


KNOBS: dict[str, Any] = {}


def knob(name: str) -> Any:
    return KNOBS.get(name)


def turn(name: str, value: Any = None) -> None:
    KNOBS[name] = value


def same(one: Any, other: Any) -> bool:
    return one is other


def tools() -> dict[str, Any]:
    return {"double": lambda n: n * 2, "later": lambda n: _soon(n)}


async def _soon(value: Any) -> Any:
    await asyncio.sleep(0)
    return value


def answers() -> list[Answer]:
    return [Answer("one"), Answer("two")]


HERE = __name__
NAMES = {
    name: f"{HERE}:{target}"
    for name, target in {
        "http.get": "get",
        "timer.sleep": "sleep",
        "ask.ask_user": "sleep",
        "forever": "forever",
        "fs.read": "read",
        "pair": "pair",
        "who": "who",
        "log": "log",
        "log.levels": "LEVELS",
        "bad": "bad",
        "bug": "bug",
        "interrupt": "interrupt",
        "twice": "twice",
        "kind": "kind",
        "answers": "answers",
        "dial": "Dial",
        "same": "same",
        "tools": "tools",
        "inspect": "kind",
    }.items()
}
LATER = dict.fromkeys(("later.thing", "later.module"), (AbsentAnswer.RAISES, "it is not available yet"))
