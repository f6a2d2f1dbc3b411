"""emitter, config, errors, health, and the table of names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.core.api.support import Room

from cru.core.api import config, emitter, health
from cru.core.api.host import BadArgument, host
from cru.core.api.names import ABSENT, CONSTANTS, INDEXED, NAMES
from cru.core.command_table import load_target
from cru.core.events.payloads import ConfigChanged


def test_listeners_hear_what_is_emitted_in_order(tmp_path: Path) -> None:
    seen: list[Any] = []

    async def main() -> None:
        e = emitter.new()
        assert e.on("saved", lambda *a: seen.append(("first", a))) == 1
        assert e.once("saved", lambda *a: seen.append(("once", a))) == 2
        assert e.on("other", print) == 1
        assert e.count("saved") == 2
        await e.emit("saved", 1, None, "x")
        await e.emit_async("saved")
        assert e.count("saved") == 1
        assert e.count("nothing") == 0
        await e.emit("nothing")

    Room(tmp_path)(main)
    assert seen == [("first", (1, None, "x")), ("once", (1, None, "x")), ("first", ())]


def test_ids_of_listeners_are_never_used_again(tmp_path: Path) -> None:
    async def main() -> None:
        e = emitter.new()
        assert e.off("x", e.on("x", print)) is True
        assert e.off("x", 1) is False
        assert e.on("x", print) == 2

    Room(tmp_path)(main)


def test_a_failing_listener_is_reported_and_the_others_hear_it(tmp_path: Path) -> None:
    room, seen = Room(tmp_path), []

    async def bad() -> None:
        raise ValueError("deaf")

    async def main() -> None:
        e = emitter.new()
        e.on("x", bad)
        e.on("x", lambda: seen.append(1))
        await e.emit("x")

    room(main)
    assert seen == [1]
    assert room.notices()[-1] == "demo: listener of x: deaf"


def test_listeners_go_by_owner_or_all_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        e = emitter.new()
        e.on("a", print, "one")
        e.on("b", print, "one")
        e.on("b", print)
        e.unregister_owner("one")
        assert (e.count("a"), e.count("b")) == (0, 1)
        e.off_all("a")
        e.unregister_owner("demo")
        e.on("a", print)
        e.off_all()
        assert (e.count("a"), e.count("b")) == (0, 0)
        with pytest.raises(BadArgument, match="fn must be a function"):
            e.on("a", None)  # type: ignore[arg-type]

    Room(tmp_path)(main)


def test_a_listener_removed_while_emitting_is_not_called(tmp_path: Path) -> None:
    seen: list[str] = []

    async def main() -> None:
        e = emitter.new()
        e.on("x", lambda: e.off("x", 2))
        e.on("x", lambda: seen.append("removed"))
        e.on("x", lambda: e.on("x", lambda: seen.append("new")))
        await e.emit("x")

    Room(tmp_path)(main)
    assert seen == []


def test_plugins_share_the_global_emitter_and_are_called_in_their_own_name(tmp_path: Path) -> None:
    room, seen = Room(tmp_path), []

    async def main() -> None:
        e = emitter.global_()
        assert e is emitter.global_()
        await e.emit("x")

    room(lambda: emitter.global_().on("x", lambda: seen.append(host().plugin.name)))
    room.host = room.host_of("other")
    room(main)
    assert seen == ["demo"]


class Settings:
    """As the composition root lends them."""

    def as_dict(self) -> dict[str, Any]:
        return {"model": "x", "api_key": "set", "kilns": {"a": "/b"}, "plugins": {"web": {"provider": {"name": "s"}}}}

    def origin(self, key: str) -> str:
        return "config.toml:1"

    def layers(self, key: str) -> tuple[str, ...]:
        return ("user",)


CONFIG: list[tuple[str, Any]] = [
    ("demo.folder", "notes"),
    ("demo.deep.er", [1]),
    ("demo.deep.er.no", None),
    ("demo.missing", None),
    ("web.provider.name", "s"),
    ("web", {"provider": {"name": "s"}}),
    ("model", "x"),
    ("nothing", None),
    ("api_key", None),
    ("kilns", None),
]


@pytest.mark.parametrize(("key", "value"), CONFIG)
def test_config_reads_plugins_with_dots_and_settings_without(tmp_path: Path, key: str, value: Any) -> None:
    room = Room(tmp_path, config={"folder": "notes", "deep": {"er": [1]}})
    room.parts.services.settings = Settings()
    assert room(config.get, key) == value


def test_config_by_plugin_name_is_its_table_or_nil(tmp_path: Path) -> None:
    room = Room(tmp_path, config={"folder": "notes"})
    assert room(config.section, "demo") == {"folder": "notes"}
    assert room(config.section, "other") is None


def test_config_set_is_seen_by_all_plugins_and_announced(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room(config.set_, {"greeting": "hi"})
    room.host = room.host_of("other")
    assert room(config.get, "greeting") == "hi"
    assert room.world.of(ConfigChanged) == [ConfigChanged("greeting", "hi")]
    for bad in ("x", {"f": print}):
        with pytest.raises(BadArgument, match=r"cru\.config\.set"):
            room(config.set_, bad)


def test_recent_errors_start_empty_and_count_is_checked(tmp_path: Path) -> None:
    room = Room(tmp_path)
    assert room(health.recent_errors) == []
    with pytest.raises(BadArgument, match=r"cru\.errors\.recent"):
        room(health.recent_errors, -1)


def test_a_health_report_is_unhealthy_only_by_an_error(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room(health.start, "demo")
    room(health.ok, "found")
    room(health.info, "version 1")
    room(health.warn, "old", "update it")
    report = room(health.get_results)
    assert (report["name"], report["healthy"]) == ("demo", True)
    assert report["checks"][2] == {"level": "warn", "msg": "old", "advice": "update it"}
    assert room(health.get_results) == {"name": "demo", "healthy": True, "checks": []}
    room(health.error, "gone", ["install it"])
    assert room(health.get_results)["healthy"] is False


@pytest.mark.sample(40)
@pytest.mark.parametrize("target", sorted({*NAMES.values(), *(t for pair in INDEXED.values() for t in pair if t)}))
def test_every_name_leads_to_a_documented_function_with_an_example(target: str) -> None:
    function = load_target(target)
    assert callable(function)
    assert "Example: " in function.__doc__
    assert " --> " in function.__doc__


def test_constants_lead_to_values() -> None:
    assert load_target(CONSTANTS["json.null"]) is None
    assert load_target(CONSTANTS["oq.null"]) is None
    assert load_target(CONSTANTS["log.levels"])["WARN"] == 3


def test_names_whose_things_are_absent_are_no_names_yet() -> None:
    assert "ws.connect" in ABSENT and not ABSENT.keys() & NAMES.keys()
