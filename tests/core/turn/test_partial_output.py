"""What a command had printed when it was interrupted is kept: for the model in the call's result, and for faces."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.core.turn.support import World

from cru.core.base.values.interruptions import CallInterrupted
from cru.core.events.stream import Published, ToolOutput
from cru.core.turn.partial_output import MARK
from cru.core.undo.call_outcomes import why_not_run
from cru.faces.cli.chat.call_results import CallResults
from cru.faces.cli.chat.own_commands import run_own_command


def interrupt_at_output(world: World) -> None:
    def interrupt(_item: Published[ToolOutput]) -> None:
        world.session.interrupt()

    world.session.parts.bus.stream.subscribe(interrupt, ToolOutput)


def interrupted(path: Path, command: str, **settings: Any) -> World:
    """A world in which the command was interrupted when it had printed something, and a prompt followed."""
    script = f'call: bash {{"command":"{command}"}}\n---\ntext: done\n'
    world = World(path, script, settings={"mode": "trust", **settings})
    interrupt_at_output(world)
    assert world.run("one").cause == "interrupted"
    return world


def test_the_model_reads_what_was_printed_and_that_it_was_interrupted(tmp_path: Path) -> None:
    world = interrupted(tmp_path, "echo begun; exec sleep 600")
    assert world.results() == [f"begun\n{MARK}"]
    world.run("two")
    assert f"begun\\n{MARK}" in world.sent[-1].decode()
    (entry,) = world.log("tool_result")
    assert entry.metadata == {"which": "interrupted", "is_error": True} and why_not_run(entry) == ""


def test_a_face_shows_it_below_the_call(tmp_path: Path) -> None:
    world = interrupted(tmp_path, "echo begun; exec sleep 600")
    (call,) = world.of(CallInterrupted)
    assert (call.name, call.output) == ("bash", "begun")
    assert [text for _, text in CallResults(world.session.parts).lines(call)] == ["  | begun"]


def test_an_output_that_is_too_long_is_saved_to_a_file(tmp_path: Path) -> None:
    world = interrupted(tmp_path, "seq 2000; exec sleep 600", tool_output_cache_threshold=100)
    (result,) = world.results()
    assert len(result) < 3_000 and result.endswith(MARK)
    (saved,) = (world.built.store.folder / "tool_cache").glob("*bash*")
    assert saved.read_text().startswith("1\n2\n") and saved.read_text().endswith(f"2000\n{MARK}")


def test_keys_of_cru_stay_hidden(tmp_path: Path) -> None:
    script = 'call: bash {"command":"echo sk-secret; exec sleep 600"}\n---\ntext: done\n'
    world = World(tmp_path, script, settings={"mode": "trust"})
    world.session.parts.place.secrets.hidden = ("sk-secret",)
    interrupt_at_output(world)
    world.run("one")
    assert "sk-secret" not in str(world.results()) + str(world.of(CallInterrupted))


def test_a_command_that_ran_out_of_time_keeps_its_output(tmp_path: Path) -> None:
    script = 'call: bash {"command":"echo begun; exec sleep 600","timeout":0.2}\n---\ntext: done\n'
    world = World(tmp_path, script, settings={"mode": "trust"})
    world.run("one")
    (result,) = world.results()
    assert result.startswith("begun\n") and "ran longer than 0.2 s" in result


def test_a_sub_agents_work_is_named_when_it_is_interrupted(tmp_path: Path) -> None:
    child = tmp_path / "child.txt"
    child.write_text('text: I look\ncall: bash {"command":"echo begun; exec sleep 600"}\n---\ntext: done\n')
    script = f'call: task {{"agent":"general","prompt":"look","model":"scripted:{child}"}}\n---\ntext: done\n'
    world = World(tmp_path, script, settings={"mode": "trust"})

    async def main() -> None:
        running = asyncio.ensure_future(world.asked("one"))
        tasks = world.built.store.folder / "tasks"
        while not any("tool_call" in log.read_text() for log in tasks.glob("*/context.jsonl")):
            await asyncio.sleep(0.01)
        world.session.interrupt()
        await running
        await world.session.close()

    asyncio.run(main())
    (result,) = world.results()
    assert "said: I look" in result and 'called bash {"command":"echo begun' in result and result.endswith(MARK)


@pytest.mark.parametrize(
    ("command", "text"),
    [("echo half; exec sleep 600", "half\n[interrupted]"), ("echo >&2 half; exec sleep 600", "half\n[interrupted]")],
)
def test_an_own_command_that_is_interrupted_is_shown_and_known_to_the_model(
    tmp_path: Path, command: str, text: str
) -> None:
    world, shown = World(tmp_path, "text: done\n"), list[str]()

    async def main() -> str:
        running = asyncio.ensure_future(run_own_command(world.session.parts, command, shown.append))

        def cancel(_item: Published[ToolOutput]) -> None:
            running.cancel()

        world.session.parts.bus.stream.subscribe(cancel, ToolOutput)
        return await running

    known = asyncio.run(main())
    assert shown == [text] and known.endswith(f"$ {command}\n{text}")
