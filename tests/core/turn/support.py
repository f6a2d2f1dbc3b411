"""A session on a scripted model, with what it publishes, logs and sends within reach."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from tests.kit.closing import close_later

from cru.core.base.values.messages import Delta, Entry, Request, ToolSpec
from cru.core.compose import SessionBundle, Start, build
from cru.core.events.answers import Answer
from cru.core.events.bus import Bus
from cru.core.events.registry import HandlerFunction
from cru.core.events.stamp import Event
from cru.core.events.stream import Notice, Published
from cru.core.guard.rules.gate import PermissionReply, PermissionSubject
from cru.core.models.protocol import RequestBody
from cru.core.tools.builtin import ToolRegistry
from cru.core.tools.protocol import Access, Tool, ToolContext, ToolResult
from cru.core.turn.session import Session
from cru.core.turn.turn import LegResult

P = TypeVar("P", bound=Struct)
Handlers = (
    Mapping[str, HandlerFunction] | Iterable[tuple[str, HandlerFunction] | tuple[str, HandlerFunction, dict[str, Any]]]
)


class Ext:
    """An extension out of (event, handler[, fields])."""

    dialect = "python"

    def __init__(self, handlers: Handlers, owner: str = "ext") -> None:
        self.owner = owner
        pairs = list(handlers.items()) if isinstance(handlers, Mapping) else list(handlers)
        self._handlers = [(p[0], p[1], p[2] if len(p) > 2 else {}) for p in pairs]

    def register(self, bus: Bus) -> None:
        for event, call, fields in self._handlers:
            bus.registry.on(event, call, owner=self.owner, **fields)


def always(answer: Answer) -> HandlerFunction:
    return lambda _event: answer


def once(answer: Answer) -> tuple[HandlerFunction, dict[str, Any]]:
    return always(answer), {"once": True}


class ToolBox:
    """A source of tools made in a test."""

    def __init__(self, *tools: Tool) -> None:
        self._tools = tools

    def tools(self) -> Iterable[Tool]:
        return self._tools


class MadeTool:
    """A tool around a function of its arguments."""

    source = "test"

    def __init__(
        self, name: str, work: Callable[[dict[str, Any]], Any], *, parallel: bool = False, kind: str = "flow"
    ) -> None:
        self.spec = ToolSpec(name, f"the tool {name}", {"type": "object"})
        self.kind: Any = kind
        self.parallel = parallel
        self._work = work

    def check(self, arguments: str) -> dict[str, Any]:
        value: dict[str, Any] = msgspec.json.decode(arguments)
        return value

    def subject(self, args: Mapping[str, Any]) -> str:
        return ""

    def paths(self, args: Mapping[str, Any]) -> Iterable[tuple[Access, str]]:
        return ()

    async def run(self, args: dict[str, Any], running: ToolContext) -> ToolResult:
        made = self._work(args)
        if asyncio.iscoroutine(made):
            made = await made
        return made if isinstance(made, ToolResult) else ToolResult(str(made))


class Person:
    """Answers every question with the same reply and keeps the questions."""

    def __init__(self, reply: PermissionReply | Exception | None) -> None:
        self.reply = reply
        self.questions: list[PermissionSubject] = []

    async def ask(self, subject: PermissionSubject) -> PermissionReply | None:
        self.questions.append(subject)
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply


class Recording:
    """A model that keeps every request it encodes and every body it sends."""

    tools_by_default = True

    def __init__(self, model: Any, sent: list[bytes], requests: list[Request]) -> None:
        self._model, self._sent, self._requests = model, sent, requests
        self.provider, self.name = model.provider, model.name

    def encode(self, request: Request) -> RequestBody:
        self._requests.append(request)
        body: RequestBody = self._model.encode(request)
        return body

    async def stream(self, body: RequestBody) -> AsyncIterator[Delta]:
        self._sent.append(body.join())
        async for delta in self._model.stream(body):
            yield delta

    async def close(self) -> None:
        await self._model.close()


class World:
    """One session; `sent` are the bodies of requests, `items` all that was published."""

    def __init__(self, path: Path, script: str, *extensions: Any, **more: Any) -> None:
        self.path = path
        self.sent: list[bytes] = []
        self.requests: list[Request] = []
        self.items: list[Published] = []
        file = path / "script.txt"
        if script or not file.exists():
            file.write_text(script)
        (path / "project").mkdir(exist_ok=True)
        overrides = {"model": f"scripted:{file}", **more.pop("settings", {})}
        (path / "home").mkdir(exist_ok=True)
        env = {"PATH": "/usr/bin:/bin", "HOME": str(path), "CRU_SANDBOX": "off"}
        start = Start(path / "home", "main", env, path / "project", path / "project", overrides)
        self.built: SessionBundle = build(start, extensions=extensions, watch=self._watch, **more)
        close_later(self.built.close)
        self._record()

    def _watch(self, bus: Bus) -> None:
        bus.stream.subscribe(self.items.append)

    def _record(self) -> None:
        choose = self.session.parts.models.choose

        async def recording(name: str) -> Any:
            resolved = await choose(name)
            if isinstance(resolved.model, Recording):
                return resolved
            return msgspec.structs.replace(resolved, model=Recording(resolved.model, self.sent, self.requests))

        self.session.parts.models.choose = recording

    @property
    def session(self) -> Session:
        return self.built.session

    def run(self, *prompts: str) -> LegResult:
        """Ask each prompt in a run of its own; the last result."""
        return asyncio.run(self.asked(*prompts))

    async def asked(self, *prompts: str) -> LegResult:
        result: LegResult | None = None
        for prompt in prompts:
            self.session.submit(prompt)
            result = await self.session.run()
        assert result is not None
        return result

    def resume(self) -> LegResult:
        return asyncio.run(self.session.resume())

    def of(self, payload: type[P]) -> list[P]:
        """Final payloads of one event, in order."""
        return [i.payload for i in self.items if isinstance(i.payload, payload)]

    def notices(self) -> list[str]:
        return [n.text for n in self.of(Notice)]

    def log(self, kind: str = "") -> list[Entry]:
        return [e for e in self.built.store.everything() if not kind or e.entry_type == kind]

    def results(self) -> list[str]:
        return [e.content for e in self.log("tool_result")]

    def tools(self, *tools: Tool) -> World:
        """Offer only these tools besides nothing else."""
        self.session.parts.tools = ToolRegistry([ToolBox(*tools)])
        return self

    def said(self, number: int = -1) -> list[tuple[str, str]]:
        """(role, content) of the messages of a request."""
        body = msgspec.json.decode(self.sent[number])
        return [(m["role"], m.get("content", "")) for m in body["messages"]]


def payload(event: Event) -> Any:
    return event.payload
