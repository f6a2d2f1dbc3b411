"""Probes of what others bring: command hooks, plugins, MCP servers. The first two are commands of cru, run beside this one, so that what
hangs or crashes there ends there."""

from __future__ import annotations

import sys

import msgspec
from msgspec.structs import replace

from cru.app.start import user_home
from cru.faces.cli.doctor.findings import DoctorFinding, FindingLevel, Patient
from cru.process.capture import TextCapture
from cru.process.child import Program
from cru.process.run import ProcessResult, run_program

SECONDS = 20.0
"""For each of the two commands."""
LEVELS: dict[str, FindingLevel] = {"broken": "error", "waiting": "warn", "odd": "warn"}

HEALTH: dict[str, FindingLevel] = {"ok": "ok", "info": "ok", "warn": "warn", "error": "error"}


class _HookFinding(msgspec.Struct):
    level: str
    where: str = ""
    text: str = ""
    hint: str = ""


async def hooks(patient: Patient) -> list[DoctorFinding]:
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
            "hooks",
            LEVELS.get(row.level, "warn"),
            f"{row.where}: {row.text}".removeprefix(": "),
            row.hint or "cru hooks check",
        )
        for row in rows
    ]
    return findings or [DoctorFinding("hooks", "ok", "none is broken, and none awaits trust")]


async def plugins(patient: Patient) -> list[DoctorFinding]:
    ended = await _cru(patient, "plugin", "health")
    if ended.timed_out:
        return [
            DoctorFinding("plugins", "error", f"`cru plugin health` takes longer than {SECONDS:g} s", "cru plugin list")
        ]
    findings = [*_read_health(ended.output), *_read_complaints(ended.errors)]
    if ended.exit_status and not any(finding.level == "error" for finding in findings):
        findings.append(DoctorFinding("plugins", "error", _last_line(ended), "cru plugin health"))
    return findings or [DoctorFinding("plugins", "ok", "there are no plugins")]


def _read_health(text: str) -> list[DoctorFinding]:
    """What `cru plugin health` says: a line for each plugin, below it its checks, below a check its advice."""
    findings: list[DoctorFinding] = []
    name, has_checks = "", True
    for line in text.splitlines():
        level, _, rest = line.strip().partition(" ")
        if line[:1] != " ":
            if not has_checks:
                findings.append(DoctorFinding("plugins", "ok", name))
            name, has_checks = line, False
        elif line[:3].strip():
            has_checks = True
            findings.append(DoctorFinding("plugins", HEALTH.get(level, "ok"), f"{name}: {rest.strip()}"))
        elif findings and line.strip():
            last = findings[-1]
            findings[-1] = replace(last, advice=f"{last.advice} {line.strip()}".lstrip())
    return findings if has_checks else [*findings, DoctorFinding("plugins", "ok", name)]


def _read_complaints(text: str) -> list[DoctorFinding]:
    """What was told on the way: plugins that cannot be loaded, or wait for trust."""
    lines = [line.removeprefix("cru: ") for line in text.splitlines() if line.startswith("cru: ")]
    return [DoctorFinding("plugins", "warn", line, "cru plugin list") for line in lines]


async def mcp(patient: Patient) -> list[DoctorFinding]:
    """What is configured; `cru mcp test` starts them."""
    if patient.settings is None:
        return [DoctorFinding("mcp", "warn", "not looked at: the settings cannot be used")]
    from cru.mcp.configured import find_configured

    start = patient.start
    servers = find_configured(patient.settings, start.home, start.root, user_home(start), start.env)
    findings = [DoctorFinding("mcp", "warn", text, "cru mcp") for text in servers.problems]
    waiting = [definition.name for definition in servers.waiting]
    if waiting:
        findings.append(
            DoctorFinding("mcp", "warn", f"not judged yet: {', '.join(waiting)}", "cru mcp accept NAME, or reject NAME")
        )
    names = [definition.name for definition in servers.definitions]
    text = f"configured: {', '.join(names)} (`cru mcp test` starts them)" if names else "no servers are configured"
    return [*findings, DoctorFinding("mcp", "ok", text)]


async def _cru(patient: Patient, *words: str) -> ProcessResult:
    start = patient.start
    argv = (sys.executable, "-m", "cru.faces.cli.main", "--home", str(start.home), *words)
    env = {**start.env, "CRU_PROJECT_ROOT": str(start.root)}
    return await run_program(Program(argv, start.cwd, env, is_bound=True), SECONDS, TextCapture(), TextCapture())


def _last_line(ended: ProcessResult) -> str:
    lines = [line for line in (ended.errors or ended.output).splitlines() if line.strip()]
    return lines[0].removeprefix("cru: ") if lines else f"exit status {ended.exit_status}"
