"""The second half of `make demo`: one tool, offered to the embedded model with a list of paths to choose from.

It is also the shortest program that uses cru as a library: an extension, a source of tools, a session, a turn.
"""

import asyncio
import os
from pathlib import Path

from cru.core.base.values.messages import ToolSpec
from cru.core.compose import Start, build
from cru.core.events.answers import transform
from cru.core.events.bus import Bus
from cru.core.events.payloads import StreamingDelta, ToolCalled, ToolCompleted
from cru.core.events.stamp import Event
from cru.core.events.stream import Published
from cru.core.tools.builtin import BuiltInTools

PATHS = ["docs", "src", "tests"]


class OneTool:
    """Only `ls` is offered, and only in the first round, so that a small model comes to an end."""

    owner, dialect = "demo", "python"

    def register(self, bus: Bus) -> None:
        bus.registry.on("tools:select", lambda event: transform(tools=("ls",)), owner=self.owner)
        bus.registry.on("tool:completed", self.done, owner=self.owner)

    def done(self, event: Event) -> None:
        print("[the tool is done]")


class Folders:
    """The built-in `ls` with an enum of paths in its schema."""

    def tools(self) -> list[object]:
        ls = next(tool for tool in BuiltInTools().tools() if tool.spec.name == "ls")
        path = {"type": "string", "enum": PATHS}
        schema = {"type": "object", "properties": {"path": path}, "required": ["path"], "additionalProperties": False}
        ls.spec = ToolSpec("ls", "List a folder.", schema)
        return [ls]


def show(item: Published) -> None:
    payload = item.payload
    if isinstance(payload, StreamingDelta):
        print(payload.delta, end="", flush=True)
    elif isinstance(payload, ToolCalled):
        print(f"[the model calls {payload.name} {payload.args}]")
    elif isinstance(payload, ToolCompleted):
        print("\n".join(f"    {line}" for line in payload.result.splitlines()[:8]))


async def main() -> None:
    here = Path.cwd()
    start = Start(Path(os.environ["CRU_HOME"]), "demo-ls", dict(os.environ), here, here)
    built = build(
        start, extensions=[OneTool()], sources=[Folders()],
        watch=lambda bus: bus.stream.subscribe(show, StreamingDelta, ToolCalled, ToolCompleted),
    )  # fmt: skip
    built.session.parts.models.offer_tools = True
    await built.session.archive()
    built.session.submit("List the files in the folder docs.")
    result = await built.session.run()
    print(f"\n[{result.cause if result else 'nothing'} after {result.rounds if result else 0} rounds]")
    await built.session.close()
    await built.close()


asyncio.run(main())
