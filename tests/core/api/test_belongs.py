"""What a plugin registers is taken back by it alone: another one is told whose it is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.core.api.support import Room, awaited
from tests.kit import HomeDir, Reply, server
from tests.kit import cru as command

from cru.core.api import emitter, modes, on, permissions, publish, schedule, service, session, tools
from cru.core.api.host import HOST, BadArgument, Host, Values


def nothing(*_: Any) -> None: ...


def service_of(room: Room) -> Callable[[], Any]:
    service.define({"name": "beat", "start": nothing})
    return lambda: service.stop("beat")


def defined_again(room: Room) -> Callable[[], Any]:
    service.define({"name": "beat", "start": nothing})
    return lambda: service.define({"name": "beat", "start": nothing})


def listener(room: Room) -> Callable[[], Any]:
    id = emitter.global_().on("saved", nothing)
    return lambda: emitter.global_().off("saved", id)


def listeners(room: Room) -> Callable[[], Any]:
    emitter.global_().on("saved", nothing)
    return lambda: emitter.global_().unregister_owner("demo")


def mode(room: Room) -> Callable[[], Any]:
    modes.set_("review", {"permissions": "deny"})
    return lambda: modes.set_("review", None)


def default(room: Room) -> Callable[[], Any]:
    session.set_default("temperature", 1)
    return lambda: session.set_default("temperature", None)


def active(room: Room) -> Callable[[], Any]:
    tools.set_active(None, ["read"])
    return lambda: tools.set_active(None, None)


def line(room: Room) -> Callable[[], Any]:
    publish.statusline_set(None, "branch", "main")
    return lambda: publish.statusline_clear(None, "branch")


def handle(register: Callable[[], int], take_back: Callable[[int], Any]) -> Callable[[Room], Callable[[], Any]]:
    def made(room: Room) -> Callable[[], Any]:
        id = register()
        return lambda: take_back(id)

    return made


# what the plugin `demo` makes; gives how it is taken back
OWNED: dict[str, Callable[[Room], Callable[[], Any]]] = {
    "a handler": handle(lambda: on.on("turn:complete", nothing), on.off),
    "a handler of two events": handle(lambda: on.on("tool_result", nothing), on.off),
    "a permission handler": handle(lambda: permissions.on_request(nothing), on.off),
    "a schedule": handle(lambda: schedule.schedule(60, nothing), schedule.cancel),
    "a service": service_of,
    "a service's name": defined_again,
    "a listener": listener,
    "its listeners": listeners,
    "a mode": mode,
    "a default": default,
    "the active tools": active,
    "a statusline": line,
}


def told(found: Any) -> str:
    """The error that a function gives as a value."""
    if isinstance(found, Values):
        return str(found[1] or "")
    return str(found.get("reason", "")) if isinstance(found, dict) else ""


def as_two(tmp_path: Path, what: str, work: Callable[[Callable[[], Any], Host, Host], Awaitable[None]]) -> None:
    room = Room(tmp_path)

    async def main() -> None:
        token = HOST.set(room.host)
        try:
            await work(OWNED[what](room), room.host, room.host_of("other"))
        finally:
            HOST.reset(token)
            await room.close()

    asyncio.run(main())


@pytest.mark.parametrize("what", OWNED)
def test_another_plugin_is_told_whose_it_is_and_changes_nothing(tmp_path: Path, what: str) -> None:
    async def work(take_back: Callable[[], Any], _owner: Host, other: Host) -> None:
        HOST.set(other)
        try:
            said = told(await awaited(take_back))
        except BadArgument as error:
            said = f"{error.message} ({error.hint})"
        assert "belongs to demo" in said

    as_two(tmp_path, what, work)


@pytest.mark.parametrize("what", OWNED)
def test_its_own_plugin_takes_it_back_once(tmp_path: Path, what: str) -> None:
    async def work(take_back: Callable[[], Any], owner: Host, other: Host) -> None:
        assert not told(await awaited(take_back))
        assert not told(await awaited(take_back))

    as_two(tmp_path, what, work)


def test_a_shared_emitter_forgets_only_the_callers_listeners_and_ones_own_all(tmp_path: Path) -> None:
    room = Room(tmp_path)

    async def main() -> None:
        for make, left in ((emitter.global_, 1), (emitter.new, 0)):
            HOST.set(room.host)
            shared = make()
            shared.on("saved", nothing)
            HOST.set(room.host_of("other"))
            shared.on("saved", nothing)
            HOST.set(room.host)
            shared.off_all("saved")
            assert shared.count("saved") == left

    asyncio.run(main())


@pytest.mark.parametrize("name", ["zz.lua", "zz.py"])
def test_a_rule_cannot_be_switched_off_by_another_plugin(home: HomeDir, name: str) -> None:
    source = {
        "zz.lua": "for id = 1, 50 do pcall(cru.off, id) end\ncru.off(1)",
        "zz.py": "import cru\nfor id in range(1, 51):\n    try:\n        cru.off(id)\n    except Exception as error:\n"
        "        first = error\n        cru.toast(str(error))\n        break\n",
    }[name]
    folder = home.cru / "plugins"
    folder.mkdir(parents=True)
    (folder / "aa.lua").write_text(
        'cru.on("message:received", function() return { cancel = true, reason = "never" } end)'
    )
    (folder / name).write_text(source)
    with server([Reply("hello")]) as model:
        home.configure(url=model.url)
        done = command("hi", home=home)
    assert model.requests == [] and "never" in done.err and " belongs to " in done.err, done
