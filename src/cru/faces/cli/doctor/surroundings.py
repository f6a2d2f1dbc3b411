"""Probes of what is around cru: its installation, its home, the terminal and the chat, programs, and what could confine commands."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import cru
from cru.core.base.files.search_path import find_program, own_path
from cru.core.base.process.capture import TextCapture
from cru.core.base.process.child import Program
from cru.core.base.process.run import run_program
from cru.core.compose.chat_settings import ChatKeys, KeyTable, ThemeTable
from cru.core.compose.sandbox import bwrap_env, check_places, chosen_sandbox
from cru.core.guard.sandbox.backends import describe_network
from cru.core.guard.sandbox.detect import detect
from cru.faces.cli.doctor.findings import DoctorFinding, FindingLevel, Patient

EXTRAS = {
    "keyring": ("keyring", "keys in the system's keyring"),
    "prices": ("genai_prices", "prices of models"),
    "mcp": ("mcp", "MCP servers"),
    "semantic": ("numpy", "search by meaning"),
}
"""Optional parts: the name of the extra, a module of it, what it is for."""
VERSION_SECONDS = 3.0


async def installation(patient: Patient) -> list[DoctorFinding]:
    python = ".".join(map(str, sys.version_info[:3]))
    folder = os.path.dirname(cru.__file__)
    findings = [
        DoctorFinding("installation", "ok", f"cru {cru.__version__} in {folder}, Python {python} ({sys.executable})")
    ]
    missing = [f"{name} ({what})" for name, (module, what) in EXTRAS.items() if find_spec(module) is None]
    if missing:
        findings.append(
            DoctorFinding("installation", "ok", f"not installed: {', '.join(missing)}", "pip install 'cru[NAME]'")
        )
    return [*findings, *_home(patient.home)]


def _home(home: Path) -> Iterator[DoctorFinding]:
    if not home.exists():
        yield DoctorFinding("home", "ok", f"{home} is not there yet: the first run makes it")
        return
    if not os.access(home, os.W_OK | os.X_OK):
        yield DoctorFinding("home", "error", f"{home} cannot be written to", f"chmod u+rwx {home}, or --home PATH")
        return
    free = shutil.disk_usage(home).free
    if free < 100 << 20:
        yield DoctorFinding(
            "home",
            "warn",
            f"{home}: {free >> 20} MiB are free on its disk",
            "make room: conversations are written there",
        )
    else:
        yield DoctorFinding("home", "ok", f"{home} can be written to")
    for name in ("keys.json", "config.toml"):
        yield from _private(home / name)


def _private(path: Path) -> Iterator[DoctorFinding]:
    """A file that may hold keys."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    has_keys = path.name == "keys.json" or b"api_key" in path.read_bytes()
    if has_keys and stat.S_IMODE(mode) & 0o077:
        yield DoctorFinding(
            "home", "warn", f"{path} can be read by others ({stat.S_IMODE(mode):o})", f"chmod 600 {path}"
        )


async def terminal(_patient: Patient) -> list[DoctorFinding]:
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        return [DoctorFinding("terminal", "ok", "there is none: nobody can be asked here")]
    name, size = os.environ.get("TERM", ""), os.get_terminal_size(2)
    encoding = (getattr(sys.stdout, "encoding", "") or "unknown").lower()
    problems = []
    if encoding.replace("-", "") != "utf8":
        problems.append((f"output is written as {encoding}", "set LANG, for example to C.UTF-8"))
    if name.lower() in ("", "dumb", "unknown"):
        problems.append((f"TERM is {name or 'not set'}: no colours, no line editor", "TERM=xterm-256color"))
    if size.columns < 40 or size.lines < 10:
        problems.append((f"{size.columns} columns and {size.lines} rows are few", "80 and 24 are comfortable"))
    findings = [DoctorFinding("terminal", "warn", text, advice) for text, advice in problems]
    colours = os.environ.get("COLORTERM") or ("256" if "256" in name else "16")
    colours = "none (NO_COLOR)" if os.environ.get("NO_COLOR") else colours
    return [*findings, DoctorFinding("terminal", "ok", f"{name}, {size.columns}×{size.lines}, colours: {colours}")]


async def sandbox(patient: Patient) -> list[DoctorFinding]:
    """What confines commands here, and whether it is wanted."""
    settings, chosen = patient.settings, chosen_sandbox(patient.settings, patient.start.env)
    if settings is not None and chosen.mode == "off":
        origin = settings.origin("sandbox.mode")
        text = f"off, as {origin} says: commands may do all that you may"
        if origin == "default":
            text = "off, as this cru runs in a sandbox already, which confines its commands"
        return [DoctorFinding("sandbox", "ok", text)]
    detection = await detect(bwrap_env(patient.start, chosen))
    if not detection.backend:
        text = f"nothing can confine commands here: {detection.why}"
        level: FindingLevel = "error" if chosen.mode == "on" else "warn"
        return [DoctorFinding("sandbox", level, text, detection.hint or "run cru in a container")]
    if settings is None:
        text = f"not looked at: the settings cannot be used ({detection.backend} works here)"
        return [DoctorFinding("sandbox", "warn", text)]
    covered = "the model's commands" + (
        ", and the hooks, programs and MCP servers of a project" if chosen.project else ""
    )
    text = f"{covered} are confined by {detection.backend} ({detection.program}), with {describe_network(chosen)}"
    if not detection.filters_calls:
        text += "; system calls are not filtered (this needs Linux on x86-64 or arm64, and seccomp)"
    wrong = [
        DoctorFinding("sandbox", "warn", problem, "config.toml") for problem in check_places(patient.start, chosen)
    ]
    return [DoctorFinding("sandbox", "ok", text), *wrong]


async def programs(patient: Patient) -> list[DoctorFinding]:
    git_level: FindingLevel = "error" if (patient.start.root / ".git").exists() else "warn"
    return [
        await _program(patient, "git", git_level, "sub-agents with a worktree of their own need it"),
        await _program(patient, "rg", "ok", "not needed, cru searches by itself; models like to call ripgrep"),
    ]


async def _program(patient: Patient, name: str, without: FindingLevel, why: str) -> DoctorFinding:
    path = find_program(name, own_path(patient.start.env.get("PATH", os.defpath), str(patient.start.root)))
    if path is None:
        return DoctorFinding("programs", without, f"{name} is not on the PATH: {why}", f"install {name}")
    program = Program((path, "--version"), patient.start.cwd, patient.start.env)
    ended = await run_program(program, VERSION_SECONDS, TextCapture(None, 1000))
    if ended.timed_out or ended.exit_status:
        how = f"does not answer within {VERSION_SECONDS:g} s" if ended.timed_out else f"ends with {ended.exit_status}"
        return DoctorFinding("programs", "warn", f"{path} --version {how}", f"does `{name} --version` work in a shell?")
    return DoctorFinding("programs", "ok", f"{ended.output.strip().partition(chr(10))[0]} ({path})")


async def chat(patient: Patient) -> list[DoctorFinding]:
    """Check what the chat reads at its start: its theme and its keys."""
    settings = patient.settings
    if settings is None:
        return [DoctorFinding("chat", "warn", "not looked at: the settings cannot be used")]
    from cru.faces.cli.chat.keys import unknown_keys
    from cru.faces.cli.chat.themes import ThemeError, Themes

    theme = settings.of(ThemeTable).theme if settings.has(ThemeTable) else ThemeTable().theme
    keys = settings.of(KeyTable).keys if settings.has(KeyTable) else ChatKeys()
    themes, findings = Themes(patient.home), []
    try:
        themes.use(theme)
    except ThemeError as error:
        findings.append(DoctorFinding("chat", "warn", error.message, error.hint))
    findings += [DoctorFinding("chat", "warn", text) for text in unknown_keys(keys)]
    return findings or [DoctorFinding("chat", "ok", f"theme {themes.name}; its keys are there")]
