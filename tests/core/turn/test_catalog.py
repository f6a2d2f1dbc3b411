"""Every live event of the catalog fires in a session; those that only the command fires are named with the reason."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.core.turn.support import Ext, Person, World, always

from cru.core.base.values.messages import Entry
from cru.core.conversations.inbox import read_inbox
from cru.core.events.answers import add_context, cancel, inject
from cru.core.events.catalog import BY_TYPE, CATALOG
from cru.core.events.stream import Published
from cru.core.guard.rules.gate import PermissionReply

BY_THE_COMMAND = {
    "context:switched": "`cru -c` tells it to the session that it builds next",
    "config:changed": "commands that write a setting",
    "session:paused": "Ctrl-Z",
    "session:resumed": "SIGCONT",
    "mcp:attached": "an MCP server is configured: tests/features/mcp/test_session.py",
    "tool:discovered": "its tools",
    **dict.fromkeys(
        ("file:changed", "note:parsed", "note:created", "note:modified", "note:deleted", "note:renamed"),
        "a vault is configured: tests/faces/test_note_events.py",
    ),
    "notes:select": "`[vault] grounding`: tests/faces/test_grounding.py",
    "custom": "a script emits it: tests/programs/test_twins.py",
}

SCRIPT = """\
by: order
think: hm
text: let me see
call: bash {"command":"seq 1 9000"}
call: nothing {}
call: update_todos {"content":"- [ ] sweep"}
call: send_message {"to":"other","content":"hello"}
call: task {"agent":"general","prompt":"x","model":"scripted:CHILD"}
call: task {"agent":"general","prompt":"x","model":"scripted:nothing"}
---
text: done
---
text: and more
---
text: in short
"""


def fired(items: list[Published]) -> set[str]:
    return {BY_TYPE[type(i.payload)].name for i in items if type(i.payload) in BY_TYPE}


def play(tmp_path: Path, handlers: Any) -> World:
    child = tmp_path / "child.txt"
    child.write_text("text: it is done\n")
    world = World(tmp_path, SCRIPT.replace("CHILD", str(child)), Ext(handlers), asker=Person(PermissionReply("once")))
    world.built.home.open("other")

    async def everything() -> None:
        await world.asked("go")
        await world.session.compact()
        await world.session.archive()
        await world.session.close()

    asyncio.run(everything())
    return world


def test_every_live_event_fires(tmp_path: Path) -> None:
    world = play(tmp_path, [("turn:complete", always(inject("more")), {"once": True})])
    live = {row.name for row in CATALOG if row.live}
    assert live - fired(world.items) - set(BY_THE_COMMAND) == set()
    assert set(BY_THE_COMMAND) <= live


def test_every_live_event_reaches_a_handler(tmp_path: Path) -> None:
    heard: set[str] = set()
    names = [row.name for row in CATALOG if row.live]
    handlers: list[Any] = [(name, lambda e: heard.add(e.name)) for name in names]
    play(tmp_path, [*handlers, ("turn:complete", always(inject("more")), {"once": True})])
    assert set(names) - heard - set(BY_THE_COMMAND) == set()


def test_what_an_event_cannot_take_is_dropped_with_a_warning_that_names_the_owner(tmp_path: Path) -> None:
    ext = [("context:cleared", always(inject("x"))), ("leg:started", always(add_context("y")))]
    world = World(tmp_path, "text: done\n", Ext(ext, "nosy"))
    world.run("go")
    assert world.said() == [("user", "go")]
    asyncio.run(world.session.archive())
    assert sum("nosy" in text for text in world.notices()) == 2


def test_an_inject_at_the_start_is_answered_before_the_prompt(tmp_path: Path) -> None:
    heard: list[str] = []
    ext = [
        ("session:started", always(inject("/model is no command here"))),
        ("message:received", lambda e: heard.append(f"{e.stamp.source}: {e.payload.content}")),
    ]
    world = World(tmp_path, "text: first\n---\ntext: done\n", Ext(ext))
    assert world.run("go").response == "done"
    assert heard == ["user: /model is no command here", "user: go"]


def test_an_inject_at_the_start_waits_until_something_is_asked(tmp_path: Path) -> None:
    world = World(tmp_path, "text: first\n---\ntext: done\n", Ext({"session:started": always(inject("hello"))}))

    async def read_and_ask() -> list[Entry]:
        world.session.submit("/help")
        assert await world.session.run() is None
        before = world.log("message")
        await world.asked("go")
        return before

    assert asyncio.run(read_and_ask()) == []
    assert world.said() == [("user", "hello"), ("assistant", "first"), ("user", "go")]


def test_a_message_to_another_context_may_be_cancelled(tmp_path: Path) -> None:
    script = 'call: send_message {"to":"other","content":"hello"}\n---\ntext: done\n'
    world = World(tmp_path, script, Ext({"inbox:sending": always(cancel("not to them"))}), settings={"mode": "trust"})
    other = world.built.home.open("other")
    world.run("go")
    assert world.results() == ["Not sent: not to them"]
    assert read_inbox(other.folder)[0] == []
