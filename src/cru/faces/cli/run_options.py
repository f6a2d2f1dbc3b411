"""Where a command line works: home folder, project root, context, settings of the command line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cru.faces.cli.entry import NO_MODEL
from cru.faces.cli.flags import Parsed, UsageProblem

if TYPE_CHECKING:
    from cru.app import Start
    from cru.contexts.home import Home

# Flags that are settings of one run.
OVERRIDES = {"model": "model", "mode": "mode", "transient-username": "username"}
SWITCHES: dict[str, tuple[str, bool]] = {
    "no-tool-calls": ("no_tool_calls", True),
    "hide-tool-calls": ("hide_tool_calls", True),
    "show-thinking": ("show_thinking", True),
    "raw": ("render_markdown", False),
    "verbose": ("verbose", True),
}
# Flags that a run's continuation needs too.
KEPT = ("home", "project-root", "model", "mode", "trust", "hooks", "strict-hooks", "set", "no-tool-calls")


_ENVIRONMENT: dict[str, str] = {}


def home_path(parsed: Parsed) -> Path:
    """--home, else CRU_HOME, else ~/.cru."""
    given = parsed.last("home")
    if given == "":
        raise UsageProblem("--home needs a path", "leave it out for ~/.cru")
    path = os.path.expanduser(given or os.environ.get("CRU_HOME") or "~/.cru")
    return Path(checked(os.path.abspath(path) if os.path.isabs(path) else str(working_directory() / path)))


def working_directory() -> Path:
    """Where the user stands. Raises UsageProblem if that folder was deleted."""
    try:
        return Path(checked(os.getcwd()))
    except FileNotFoundError as error:
        raise UsageProblem("the working directory does not exist any more", "cd to a folder that does") from error


def environment() -> dict[str, str]:
    """What this process was started with: a session takes the keys of providers out of `os.environ`, and another may follow it."""
    if not _ENVIRONMENT:
        _ENVIRONMENT.update(os.environ)
    return dict(_ENVIRONMENT)


def context_name(parsed: Parsed, home: Home) -> str:
    """The context of this run: -C, else -c, else the current one. Checked, not created."""
    name = parsed.last("transient-context")
    if name is None:
        name = parsed.last("switch-context")
    return home.resolve(name) if name is not None else home.current


def overrides(parsed: Parsed) -> dict[str, Any]:
    """Settings that flags give for this run."""
    given: dict[str, Any] = {}
    for flag, values in parsed.given:
        if flag.name == "trust":
            given["mode"] = "trust"  # of -t and --mode the later one counts
        elif flag.name in OVERRIDES:
            given[OVERRIDES[flag.name]] = values[0]
        elif flag.name in SWITCHES:
            key, value = SWITCHES[flag.name]
            given[key] = value
        elif flag.name == "set":
            from cru.faces.cli.set_flag import put

            put(given, values[0])
    if "mode" in given:
        from cru.permissions.errors import UnknownMode
        from cru.permissions.modes import check_mode

        try:
            check_mode(given["mode"])
        except UnknownMode as error:
            raise UsageProblem(f"{'--mode' if parsed.has('mode') else '-s'}: {error.message}", error.hint) from error
    return given


def resume_command(parsed: Parsed, context: str, code: int) -> str:
    """What to type to go on with an unfinished turn of this run, that ended with an exit status: a model that cannot be is left out."""
    without = "model" if code == NO_MODEL and _no_model(parsed.last("model") or "") else ""
    return _same_again(parsed, "-C", context, "--resume", without=without)


def needed_again(parsed: Parsed) -> str:
    """Which settings of the command line those commands leave out because they are secret; "" if none."""
    names = dict.fromkeys(value.partition("=")[0] for value in parsed.all("set") if _holds_secret(value))
    return (
        f"and again with {' '.join(f'-s {name}=…' for name in names)}: what is secret is not repeated here"
        if names
        else ""
    )


def chat_command(parsed: Parsed, context: str) -> str:
    """What to type to go on with the conversation of this run."""
    return _same_again(parsed, "-C", context)


def _same_again(parsed: Parsed, *words: str, without: str = "") -> str:
    """A command line that works in the same place and the same way; the flag `without` is left out."""
    import shlex

    flags = [given for given in parsed.given if given[0].name in KEPT and given[0].name != without]
    flags = [(flag, values) for flag, values in flags if flag.name != "set" or not _holds_secret(values[0])]
    kept = [word for flag, values in flags for word in (flag.short or flag.long, *values)]
    return shlex.join(["cru", *kept, *words])


def _holds_secret(setting: str) -> bool:
    from cru.config.secret import holds_secret

    return holds_secret(setting)


def _no_model(name: str) -> bool:
    """Whether neither a key nor a file could make a model of that name."""
    from cru.models.protocol import NoModel
    from cru.models.providers import refuse_misspelt, split_model
    from cru.models.settings import ModelSettings

    try:
        provider, identity = split_model(name, ModelSettings(), {})
        if not provider:
            refuse_misspelt(identity)
    except NoModel:
        return True
    return False


def checked(path: str) -> str:
    """Paths stand in logs and requests, which are UTF-8. Raises UsageProblem."""
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise UsageProblem(f"the path {path!a} is not UTF-8", "rename that folder, or work in another one") from error
    return path


def start_of(parsed: Parsed, context: str) -> Start:
    """What the composition root needs to know."""
    from cru.app import Start, project_root

    cwd = working_directory()
    home = home_path(parsed)
    root = project_root(cwd, os.environ, home, parsed.last("project-root"))
    if not root.is_dir():
        named = "--project-root" if parsed.last("project-root") else "CRU_PROJECT_ROOT"
        raise UsageProblem(f"{named} {checked(str(root))}: no such folder")
    checked(str(root))
    return Start(
        home, context, environment(), cwd, root, overrides(parsed), _policy(parsed), parsed.has("strict-hooks"),
        parsed.config, _debug(parsed),
    )  # fmt: skip


def _debug(parsed: Parsed) -> tuple[str, ...]:
    """What --debug names, with commas between. Raises UsageProblem."""
    words = [word.strip() for given in parsed.all("debug") for word in given.split(",")]
    if not words:
        return ()
    from cru.config.closest import did_you_mean
    from cru.engine.debug import FILES

    for word in words:
        if word == "force-markdown" or word.startswith("md="):
            raise UsageProblem(
                f"--debug: cru has no {word}", "a terminal always gets rendered Markdown, unless --raw is given"
            )
        if word not in (*FILES, "all"):
            known = (*FILES, "all")
            raise UsageProblem(
                f"--debug: there is no `{word}`", did_you_mean(word, known) or f"one of: {', '.join(known)}"
            )
    return tuple(name for name in FILES if name in words or "all" in words)


def _policy(parsed: Parsed) -> Any:
    """What --hooks says. Raises UsageProblem."""
    given = parsed.last("hooks")
    if given is None:
        return "trusted"
    from cru.config.closest import did_you_mean
    from cru.extensions.hooks.discovery import POLICIES

    if given not in POLICIES:
        hint = did_you_mean(given, POLICIES) or f"one of: {', '.join(POLICIES)}"
        raise UsageProblem(f"--hooks: there is no choice `{given}`", hint)
    return given
