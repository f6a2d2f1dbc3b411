"""Probes of what others bring: command hooks, plugins, MCP servers. The first two are commands of cru, run beside this one, so that what
hangs or crashes there ends there."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cru.core.base.process.capture import TextCapture
from cru.core.base.process.child import Program
from cru.core.base.process.run import ProcessResult, run_program
from cru.core.base.values.errors import CruError
from cru.core.command_table import load_target
from cru.core.compose.start import user_home
from cru.faces.cli.doctor.findings import DoctorFinding, FindingLevel, Patient
from cru.faces.cli.plugin.health import PluginHealth, PluginHealthList

if TYPE_CHECKING:
    from cru.features.mcp.configured import ConfiguredServers
    from cru.features.mcp.definition import ServerDefinition

SECONDS = 20.0
"""For each of the two commands."""
LEVELS: dict[str, FindingLevel] = {"broken": "error", "waiting": "warn", "odd": "warn"}

HEALTH: dict[str, FindingLevel] = {"ok": "ok", "info": "ok", "warn": "warn", "error": "error"}


class _HookFinding(msgspec.Struct):
    level: str
    where: str = ""
    text: str = ""
    hint: str = ""
    area: str = "hooks"


async def hooks(patient: Patient) -> list[DoctorFinding]:
    """And what else the same command finds by reading alone: plugins that cannot work, rules that name no tool."""
    ended = await _cru(patient, "hooks", "check", "--json")
    if ended.timed_out:
        return [
            DoctorFinding("hooks", "error", f"`cru hooks check` takes longer than {SECONDS:g} s", "cru hooks check")
        ]
    try:
        rows = msgspec.json.decode(ended.output, type=list[_HookFinding])
    except msgspec.DecodeError:
        return [DoctorFinding("hooks", "error", f"cannot be checked: {_last_line(ended)}", "cru hooks check")]
    findings = [
        DoctorFinding(
            row.area,
            LEVELS.get(row.level, "warn"),
            f"{row.where}: {row.text}".removeprefix(": "),
            row.hint or "cru hooks check",
        )
        for row in rows
        if (row.area, row.level) != ("plugins", "waiting")  # told once, of all of them, by the next probe
    ]
    if all(finding.area != "hooks" for finding in findings):
        findings.append(DoctorFinding("hooks", "ok", "none is broken, and none awaits trust"))
    return findings


async def plugins(patient: Patient) -> list[DoctorFinding]:
    ended = await _cru(patient, "plugin", "health", "--json")
    if ended.timed_out:
        return [
            DoctorFinding("plugins", "error", f"`cru plugin health` takes longer than {SECONDS:g} s", "cru plugin list")
        ]
    try:
        reports = msgspec.json.decode(ended.output, type=PluginHealthList)
    except msgspec.DecodeError:
        return [DoctorFinding("plugins", "error", _last_line(ended), "cru plugin health")]
    findings = [finding for report in reports.plugins for finding in _of_plugin(report)]
    findings += [
        DoctorFinding("plugins", "warn", notice.text, "" if "`cru " in notice.text else "cru plugin list")
        for notice in reports.notices
        if notice.owner != "hooks" and notice.text not in patient.notices  # other probes tell those
    ]
    return findings or [DoctorFinding("plugins", "ok", "there are no plugins")]


def _of_plugin(report: PluginHealth) -> Iterator[DoctorFinding]:
    """What the checks of one say. That one is not trusted is among the notices."""
    for check in report.checks or ():
        level = HEALTH.get(check.level, "ok")
        yield DoctorFinding("plugins", level, f"{report.name}: {check.text}", " ".join(check.advice))
    if not report.checks and report.state != "untrusted":
        yield DoctorFinding("plugins", "ok", f"{report.name}: it is {report.state}, and has no complaint")


async def mcp(patient: Patient) -> list[DoctorFinding]:
    """What is configured, and whether its programs are there; `cru mcp test` starts them."""
    if patient.settings is None:
        return [DoctorFinding("mcp", "warn", "not looked at: the settings cannot be used")]
    start = patient.start
    find_configured = load_target("cru.features.mcp.configured:find_configured")
    servers: ConfiguredServers = find_configured(patient.settings, start.home, start.root, user_home(start), start.env)
    findings = [DoctorFinding("mcp", "warn", text, "cru mcp") for text in servers.problems]
    waiting = [definition.name for definition in servers.waiting]
    if waiting:
        findings.append(
            DoctorFinding("mcp", "warn", f"not judged yet: {', '.join(waiting)}", "cru mcp accept NAME, or reject NAME")
        )
    for definition in servers.definitions:
        try:
            findings += _missing_program(definition, patient)
        except CruError as error:
            findings.append(DoctorFinding("mcp", "error", error.message, error.hint))
    names = [definition.name for definition in servers.definitions]
    text = f"configured: {', '.join(names)} (`cru mcp test` starts them)" if names else "no servers are configured"
    return [*findings, DoctorFinding("mcp", "ok", text)]


def _missing_program(definition: ServerDefinition, patient: Patient) -> Iterator[DoctorFinding]:
    """What a server that is started here needs and is not there. Raises BadServer if its texts cannot be read."""
    from cru.features.mcp.references import expand

    server, _ = expand(definition.server, patient.start.env)
    if not server.command:
        return
    folder = patient.start.root / Path(server.cwd).expanduser()
    if not folder.is_dir():
        yield DoctorFinding(
            "mcp", "error", f"{definition.name}: there is no folder {folder}", f"`cwd`: {definition.origin}"
        )
        return
    name = str(folder / server.command) if "/" in server.command else server.command
    if shutil.which(name, path=os.pathsep.join(os.get_exec_path({**patient.start.env, **server.env}))) is None:
        text = f"{definition.name}: there is no program {server.command}"
        yield DoctorFinding("mcp", "error", text, f"install it, or mend `command`: {definition.origin}")


async def _cru(patient: Patient, *words: str) -> ProcessResult:
    start = patient.start
    argv = (sys.executable, "-P", "-m", "cru.faces.cli.main", "--home", str(start.home), *words)
    env = {**start.env, "CRU_PROJECT_ROOT": str(start.root)}
    return await run_program(Program(argv, start.cwd, env, is_bound=True), SECONDS, TextCapture(), TextCapture())


def _last_line(ended: ProcessResult) -> str:
    lines = [line for line in (ended.errors or ended.output).splitlines() if line.strip()]
    return lines[0].removeprefix("cru: ") if lines else f"exit status {ended.exit_status}"
