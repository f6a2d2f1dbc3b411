"""`cru doctor`: all probes at once, each bounded in time; what one of them does hides none of the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import MappingProxyType

import msgspec

from cru.core.base.config.layers import ConfigError, Settings
from cru.core.base.values.errors import CruError
from cru.core.compose import load_settings
from cru.core.compose.start import Start
from cru.core.tools.secret_variables import masked
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import one_line, show
from cru.faces.cli.doctor import extensions, models, surroundings
from cru.faces.cli.doctor.findings import DoctorFinding, Patient
from cru.faces.cli.event_loop import run_interruptible
from cru.faces.cli.flags import Parsed
from cru.faces.cli.run_options import context_name, open_home, start_of

HELP = """\
cru doctor             what is there, what is wrong and how to mend it: installation, settings, keys, model, hooks, plugins,
                       MCP servers, sandbox, chat, terminal, programs; exit status 1 if something is an error
    --offline          ask no server
    --json             one JSON list, for programs
"""
SECONDS = 25.0
"""For any probe."""
Probe = Callable[[Patient], Awaitable[list[DoctorFinding]]]
PROBES: MappingProxyType[str, Probe] = MappingProxyType({
    "installation": surroundings.installation, "keys": models.keys, "model": models.model, "hooks": extensions.hooks,
    "plugins": extensions.plugins, "mcp": extensions.mcp, "sandbox": surroundings.sandbox, "chat": surroundings.chat,
    "terminal": surroundings.terminal, "programs": surroundings.programs,
})  # fmt: skip
"""In the order in which they are told, behind the settings."""


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """1 if something is an error."""
    args = CommandArguments("doctor", words, help=HELP, switches=("--offline", "--json"))
    if args.show_help():
        return 0
    start = start_of(parsed, _context(parsed))
    settings, findings = _settings(start)
    notices = tuple(finding.text for finding in findings)
    findings += run_interruptible(_probe_all(Patient(start, settings, args.has("--offline"), notices)))
    if args.has("--json"):
        show(masked(msgspec.json.encode(findings).decode()))
    else:
        for finding in findings:
            _tell(finding)
    return 1 if any(finding.level == "error" for finding in findings) else 0


def _context(parsed: Parsed) -> str:
    try:
        return context_name(parsed, open_home(parsed))
    except CruError:
        return "default"


def _settings(start: Start) -> tuple[Settings | None, list[DoctorFinding]]:
    try:
        settings, layers, notices = load_settings(start)
    except ConfigError as error:
        problems = [(str(problem.where), problem.message, problem.hint) for problem in error.problems]
        return None, [
            DoctorFinding("settings", "error", f"{where}: {text}" if where else text, hint or "docs/configuration.md")
            for where, text, hint in problems
        ]
    except CruError as error:
        return None, [DoctorFinding("settings", "error", error.message, error.hint)]
    files = [layer.file for layer in layers if layer.text]
    findings = [DoctorFinding("settings", "warn", text) for text in notices]
    return settings, [
        *findings,
        DoctorFinding("settings", "ok", f"read: {', '.join(files) or 'no files, all is default'}"),
    ]


async def _probe_all(patient: Patient) -> list[DoctorFinding]:
    results = await asyncio.gather(*(_bounded(area, probe, patient) for area, probe in PROBES.items()))
    return [finding for findings in results for finding in findings]


async def _bounded(area: str, probe: Probe, patient: Patient) -> list[DoctorFinding]:
    try:
        async with asyncio.timeout(SECONDS):
            return await probe(patient)
    except TimeoutError:
        return [DoctorFinding(area, "error", f"this could not be looked at within {SECONDS:g} s")]
    except CruError as error:
        return [DoctorFinding(area, "error", error.message, error.hint)]
    except Exception as error:  # noqa: BLE001  one probe must not hide the others; it is told as what it is
        return [DoctorFinding(area, "error", f"this could not be looked at: {type(error).__name__}: {error}")]


def _tell(finding: DoctorFinding) -> None:
    show(f"{finding.level:<5}  {finding.area:<12}  {one_line(masked(finding.text), 500)}")
    if finding.advice and finding.level != "ok":
        show(f"{'':<21}{one_line(masked(finding.advice), 500)}")
