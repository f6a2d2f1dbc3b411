"""The sandbox in a session: every agent's commands, and the argument of `bash` that asks for a run outside."""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from cru.app.start import Start
from cru.config.layers import Settings
from cru.engine.parts import Parts
from cru.sandbox import SandboxTable
from cru.sandbox.confinement import SessionSandbox
from cru.tools.builtin import BuiltInTool
from cru.tools.protocol import ConfinedCommand

OUTSIDE = {
    "type": "boolean",
    "description": "Run it outside of the sandbox. A person is asked. Only after it failed inside because of the sandbox. Default: false.",
}


def add_sandbox(parts: Parts, start: Start, settings: Settings) -> None:
    """Confine the commands of this session, if that is wanted."""
    chosen = settings.of(SandboxTable).sandbox
    if chosen.mode == "off":
        return
    sandbox = SessionSandbox(chosen, start.env, parts.bus.stream.warn)

    async def open_sandbox(_: Parts) -> None:
        await sandbox.find()

    parts.services.sandbox = partial(_lend, sandbox)
    _lend(sandbox, parts)
    parts.lifecycle.opening.insert(0, open_sandbox)
    parts.lifecycle.closing.append(sandbox.close)
    _offer_outside(parts)


def _lend(sandbox: SessionSandbox, parts: Parts) -> None:
    """Where the agent works may change with its answers, so each command asks anew."""
    gate = parts.gate

    async def confine(argv: tuple[str, ...], outlives_us: bool) -> ConfinedCommand | None:
        return await sandbox.confine(gate.places, argv, outlives_us=outlives_us)

    parts.tool_services.confine = confine


def _offer_outside(parts: Parts) -> None:
    """The model is told of the argument where it means something."""
    tool = parts.tools.find("bash")
    if isinstance(tool, BuiltInTool):
        schema = dict(tool.spec.parameters)
        properties = schema["properties"]
        assert isinstance(properties, dict)
        schema["properties"] = {**properties, "outside_sandbox": OUTSIDE}
        tool.spec = replace(tool.spec, parameters=schema)
        parts.tools.refresh()
