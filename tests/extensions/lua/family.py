"""A family of names, as the namespace has them."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

from msgspec import Struct

from cru.namespace.host import BadArgument, Object, Values, call

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


class Answer(Object, Struct):
    METHODS = ("text", "wait", "add")
    FIELDS = ("header", "mood")
    header: str
    secret: str = "hidden"

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
        "inspect": "kind",
        "later.thing": "not_there",
    }.items()
} | {"later.module": "cru.namespace.not_there:x"}
