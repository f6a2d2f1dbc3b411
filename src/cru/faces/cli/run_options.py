"""What the flags of a command line say about its run: home folder, project root, context, settings."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cru.core.base.files import MAX_BYTES
from cru.core.base.files.regular import read_regular
from cru.faces.cli.flags import Parsed, UsageProblem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cru.core.compose import Start
    from cru.core.conversations.home import Home
    from cru.core.hooks.discovery import HookPolicy

# Who copies the conversation of a run of the fleet; for this process alone.
COPY_THROUGH = "CRU_COPY_THROUGH"
# Flags whose value is a setting of one run; flags that stand for a setting's value.
VALUE_FLAGS = {"model": "model", "mode": "mode", "transient-username": "username"}
SWITCH_FLAGS: dict[str, tuple[str, str | bool]] = {
    "trust": ("mode", "trust"),  # of -t and --mode the later one counts
    "no-tool-calls": ("no_tool_calls", True),
    "hide-tool-calls": ("hide_tool_calls", True),
    "show-thinking": ("show_thinking", True),
    "raw": ("render_markdown", False),
    "verbose": ("verbose", True),
}
SANDBOX_FLAGS = {"sandbox": "on", "no-sandbox": "off"}  # the later one counts


def start_of(parsed: Parsed, context: str) -> Start:
    """What the composition root needs to know."""
    from cru.core.compose import Start, project_root

    cwd = working_directory()
    home = home_path(parsed)
    notices: list[str] = []
    root = project_root(cwd, os.environ, home, parsed.last("project-root"), notices)
    if not root.is_dir():
        origin = "--project-root" if parsed.last("project-root") else "CRU_PROJECT_ROOT"
        raise UsageProblem(f"{origin} {require_utf8(str(root))}: no such folder")
    require_utf8(str(root))
    env = dict(_first_environment())
    copy_through = env.pop(COPY_THROUGH, "")
    os.environ.pop(COPY_THROUGH, None)
    return Start(
        home, context, env, cwd, root, overrides(parsed), _hook_policy(parsed),
        parsed.has("strict-hooks"), parsed.config, _debug(parsed), parsed.last("agent") or "", copy_through,
        "" if parsed.private else project_scope(parsed, home), tuple(notices),
        Path(parsed.private) if parsed.private else None,
    )  # fmt: skip


def open_home(parsed: Parsed) -> Home:
    """The home, with the current context of the project that the user stands in. Raises ConfigError."""
    from cru.core.conversations.home import Home

    if parsed.private:
        return Home(Path(parsed.private))
    home = home_path(parsed)
    return Home(home, project=project_scope(parsed, home))


def project_scope(parsed: Parsed, home: Path) -> str:
    """The root of the project whose current context counts; "" = the one outside of projects (docs/contexts.md). Raises ConfigError."""
    from cru.core.base.files.project_root import find_root

    try:
        root = find_root(Path(os.getcwd()), os.environ, home, parsed.last("project-root"))
    except FileNotFoundError:
        return ""  # who works in a folder that was deleted is told elsewhere
    if not root.is_marked or not os.path.isdir(root.path) or _is_inherited(parsed, home, root.path):
        return ""
    if not is_utf8(path := os.fsdecode(os.fsencode(root.path))):
        return ""  # who works there is told elsewhere
    return "" if _chosen_scope(parsed, home) == "global" else path


def _is_inherited(parsed: Parsed, home: Path, root: Path) -> bool:
    """Whether it is a root only because a run of cru above this one says where it works."""
    if parsed.last("project-root") or os.environ.get("CRU_DEPTH", "1") == "1" or not os.environ.get("CRU_PROJECT_ROOT"):
        return False
    from cru.core.base.files.project_root import find_root
    from cru.core.conversations.projects import read_records
    from cru.core.conversations.state import SESSION, read_raw

    env = {key: value for key, value in os.environ.items() if key != "CRU_PROJECT_ROOT"}
    own = find_root(root, env, home)
    return not (own.is_marked and own.path == root) and os.fspath(root) not in read_records(read_raw(home / SESSION))


def _chosen_scope(parsed: Parsed, home: Path) -> str:
    """What the settings say that are known before a context is: the home's, those of a request, and `-s`."""
    values = [parsed.config.get("contexts"), overrides(parsed).get("contexts") if parsed.has("set") else None]
    if b"contexts" in config_text(home) or any(values):
        from cru.core.base.config.layers import COMMAND_LINE, Layer, merge_layers, read_layer
        from cru.core.conversations.scope import ContextsTable

        layer = read_layer("user", home / "config.toml")
        tables = [] if layer is None else [Layer("user", _only_contexts(layer.data), layer.file, layer.text)]
        tables += [Layer(COMMAND_LINE, {"contexts": value}) for value in values if isinstance(value, dict)]
        if scope := merge_layers((ContextsTable,), tables).of(ContextsTable).contexts.scope:
            return scope
    from cru.core.conversations.state import is_chibi_home

    return "global" if is_chibi_home(home) else "project"


def _only_contexts(data: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in data.items() if key == "contexts"}


@cache
def config_text(home: Path) -> bytes:
    """The text of the home's settings, b"" if there are none: for guesses before what reads them is loaded."""
    try:
        return read_regular(home / "config.toml", MAX_BYTES)
    except OSError:
        return b""


def home_path(parsed: Parsed) -> Path:
    """--home, else CRU_HOME, else ~/.cru."""
    value = parsed.last("home")
    if value == "":
        raise UsageProblem("--home needs a path", "leave it out for ~/.cru")
    path = os.path.expanduser(value or os.environ.get("CRU_HOME") or "~/.cru")
    home = Path(require_utf8(os.path.abspath(path) if os.path.isabs(path) else str(working_directory() / path)))
    if os.environ.get("CRU_SANDBOX"):
        _refuse_hidden(home)
    return home


def _refuse_hidden(home: Path) -> None:
    """Raises SandboxUnavailable in a run that is confined, and whose home is hidden by what confines it: it looks empty."""
    try:
        if not os.statvfs(home).f_flag & os.ST_RDONLY:
            return
    except OSError:
        return
    from cru.core.guard.sandbox import VARIABLE, SandboxUnavailable
    from cru.core.guard.sandbox.backends import BACKENDS

    if os.environ.get(VARIABLE) in BACKENDS:
        hint = "run it outside (`outside_sandbox`: true), or give it another home (--home)"
        raise SandboxUnavailable(f"this cru runs in a sandbox, and its home {home} is hidden there", hint)


def working_directory() -> Path:
    """Where the user stands. Raises UsageProblem if that folder was deleted."""
    try:
        return Path(require_utf8(os.getcwd()))
    except FileNotFoundError as error:
        raise UsageProblem("the working directory does not exist any more", "cd to a folder that does") from error


@cache
def _first_environment() -> dict[str, str]:
    """What this process was started with: a session takes the keys of providers out of `os.environ`, and another may follow it."""
    return dict(os.environ)


def require_utf8(path: str) -> str:
    """Paths stand in logs and requests, which are UTF-8. Raises UsageProblem."""
    if not is_utf8(path):
        raise UsageProblem(f"the path {path!a} is not UTF-8", "rename that folder, or work in another one")
    return path


def is_utf8(path: str) -> bool:
    return path.isascii() or not any("\ud800" <= char <= "\udfff" for char in path)


def context_name(parsed: Parsed, home: Home) -> str:
    """The context of this run: -C, else -c, else the current one. Checked, not created."""
    if parsed.private:
        from cru.faces.cli.no_session import NAME

        return NAME
    name = parsed.last("transient-context")
    if name is None:
        name = parsed.last("switch-context")
    return home.resolve(name) if name is not None else home.current


def overrides(parsed: Parsed) -> dict[str, Any]:
    """Settings that flags give for this run. Raises UsageProblem."""
    settings: dict[str, Any] = {}
    for flag, values in parsed.flags:
        if flag.name in VALUE_FLAGS:
            settings[VALUE_FLAGS[flag.name]] = values[0]
        elif flag.name in SWITCH_FLAGS:
            key, value = SWITCH_FLAGS[flag.name]
            settings[key] = value
        elif flag.name in SANDBOX_FLAGS:
            settings["sandbox"] = {**settings.get("sandbox", {}), "mode": SANDBOX_FLAGS[flag.name]}
        elif flag.name == "discipline":
            use = settings.setdefault("discipline", {}).setdefault("use", [])
            use.append(values[0])
        elif flag.name == "set":
            from cru.faces.cli.set_flag import add_setting

            add_setting(settings, values[0])
    if "mode" in settings:
        from cru.core.guard import UnknownMode
        from cru.core.guard.rules.modes import check_mode

        try:
            check_mode(settings["mode"])
        except UnknownMode as error:
            raise UsageProblem(f"{'--mode' if parsed.has('mode') else '-s'}: {error.message}", error.hint) from error
    return settings


def _debug(parsed: Parsed) -> tuple[str, ...]:
    """What --debug names, with commas between. Raises UsageProblem."""
    words = [word.strip() for value in parsed.all("debug") for word in value.split(",")]
    if not words:
        return ()
    from cru.core.base.config.closest import did_you_mean
    from cru.core.turn.debug import FILES

    known = (*FILES, "all")
    for word in words:
        if word == "force-markdown" or word.startswith("md="):
            raise UsageProblem(
                f"--debug: cru has no {word}", "a terminal always gets rendered Markdown, unless --raw is given"
            )
        if word not in known:
            raise UsageProblem(
                f"--debug: there is no `{word}`", did_you_mean(word, known) or f"one of: {', '.join(known)}"
            )
    return tuple(name for name in FILES if name in words or "all" in words)


def _hook_policy(parsed: Parsed) -> HookPolicy:
    """What --hooks says. Raises UsageProblem."""
    word = parsed.last("hooks")
    if word is None:
        return "trusted"
    from cru.core.base.config.closest import did_you_mean
    from cru.core.hooks.discovery import POLICIES

    for policy in POLICIES:
        if word == policy:
            return policy
    hint = did_you_mean(word, POLICIES) or f"one of: {', '.join(POLICIES)}"
    raise UsageProblem(f"--hooks: there is no choice `{word}`", hint)
