"""Whether what a hook names can be run, told without running it: missing scripts and programs, modes, line ends, login shells."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cru.core.base.files.regular import open_regular
from cru.core.base.files.search_path import own_path
from cru.core.guard.shell.analysis import analyze
from cru.core.guard.shell.command_starts import find_command_starts
from cru.core.guard.shell.programs import KEYWORDS, SHELLS, base_name, names
from cru.core.hooks.errors import BadScript, HookError, NoShell
from cru.core.hooks.launch import script_probe, shells
from cru.core.hooks.launch.process import expand_placeholders
from cru.core.hooks.launch.syntax_check import find_script_error, find_shell_error
from cru.core.hooks.model.entry import HookEntry
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.model.mapping import LaunchRules
from cru.core.hooks.trust.references import known_variables

# What a shell knows by itself, and `jq`, which hooks always have.
BUILTINS = names(
    ". : [ alias bg break builtin caller cd command compgen complete continue declare dirs disown echo enable eval exec exit export "
    "false fc fg getopts hash help history jobs jq kill let local logout mapfile popd printf pushd pwd read readarray readonly return "
    "set shift shopt source suspend test times trap true type typeset ulimit umask unalias unset wait"
)
RUNNERS = re.compile(r"(?:python|node|nodejs|ruby|perl|lua|php|bash|sh|zsh|dash|ksh|deno|bun)[\d.]*")
SCRIPT = re.compile(r".*\.(?:py|sh|bash|js|mjs|cjs|ts|rb|pl|lua|php|ps1)")
LOGIN = re.compile(r"--login|-[a-zA-Z]*l[a-zA-Z]*")
Trouble = tuple[str, str]
"""(what is wrong, the next step)."""
ASKS_SYSTEM = re.compile(r"\buname\b|\bOSTYPE\b")
"""A command that asks which system it is on may name programs of others."""


def find_broken(entry: HookEntry, rules: LaunchRules, facts: SessionFacts) -> Iterator[tuple[bool, str, str]]:
    """What cannot run as it stands, and the next step; whether that is certain: not of what the command itself looks for first."""
    if entry.kind in ("lua", "python"):
        from cru.core.hooks.report.code_problems import find_code_problems

        yield from find_code_problems(entry)
    elif entry.kind == "command":
        yield from _missing_shell(entry, rules, facts)
        if not (facts.root / entry.cwd).is_dir():
            yield True, f"there is no folder {entry.cwd}, its `cwd`", "make it, or mend `cwd`"
            return
        if entry.args is None and (text := find_shell_error(entry.command, _shell(entry, rules, facts))):
            yield True, f"its command is no shell source: {text}", ""
            return
        for certain, trouble in _of_command(entry, rules, facts):
            yield (certain, *trouble)


def _missing_shell(entry: HookEntry, rules: LaunchRules, facts: SessionFacts) -> Iterator[tuple[bool, str, str]]:
    if entry.args is None:
        try:
            shells.find_shell(
                rules.shells[shells.SYSTEM], entry.shell, own_path(facts.env.get("PATH", ""), str(facts.root))
            )
        except NoShell as error:
            yield True, error.message, error.hint


def _shell(entry: HookEntry, rules: LaunchRules, facts: SessionFacts) -> str:
    """The program that reads its command, "" if there is none."""
    try:
        return shells.find_shell(
            rules.shells[shells.SYSTEM], entry.shell, own_path(facts.env.get("PATH", ""), str(facts.root))
        )[0]
    except NoShell:
        return ""


def _is_looked_for(word: str, source: str) -> bool:
    """Whether a command makes sure of a program or file before it runs it, or of the system that it is on."""
    name = re.escape(word)
    looks = rf"\b(?:command\s+-[vV]|type(?:\s+-\w+)?|which|hash)\s+[\"']?{name}\b|-[efrsx]\s+[\"']?{name}(?!\w)"
    return re.search(looks, source) is not None or ASKS_SYSTEM.search(source) is not None


def _of_command(entry: HookEntry, rules: LaunchRules, facts: SessionFacts) -> Iterator[tuple[bool, Trouble]]:
    """(whether it is certain, the trouble)."""
    env = {**facts.env, **known_variables(entry, facts)}
    dispatches = entry.args is None and rules.dispatches_paths
    cwd = facts.root / entry.cwd
    if entry.args is not None:
        words = (word for word in (entry.command, *entry.args) if word)
        try:
            argv = [expand_placeholders(word, env, rules.placeholders) for word in words]
        except HookError as error:
            yield True, (error.message, error.hint)
            return
        for trouble in (*_first(argv[0], str(cwd), entry, env, dispatches), *_script(argv, cwd, env, facts.root)):
            yield True, trouble
        return
    env["HOME"] = env.get("HOME") or str(facts.user_home)
    for start in find_command_starts(entry.command, env):
        if start.text and (start.folders is not None or start.text.startswith("/")):
            program = expand_home(start.text, env)
            for trouble in _first(program, os.path.join(cwd, *(start.folders or ())), entry, env, dispatches):
                yield not _is_looked_for(start.text, entry.command), trouble
    for part in analyze(_filled(entry.command, env)).parts:
        if "cd " not in entry.command:
            for trouble in _script([expand_home(word, env) for word in part], cwd, env, facts.root):
                yield not any(_is_looked_for(word, entry.command) for word in part[1:]), trouble


def expand_home(word: str, env: Mapping[str, str]) -> str:
    """What a shell makes of a word that begins with `~`; in the exec form it is a name like any other."""
    if word == "~" or word.startswith("~/"):
        return env.get("HOME", "~") + word[1:]
    return os.path.expanduser(word)


def starts_login_shell(entry: HookEntry) -> bool:
    """Whether it starts a shell that reads the user's profile."""
    parts = [(entry.command, *entry.args)] if entry.args is not None else analyze(entry.command).parts
    return any(
        base_name(words[0]) in SHELLS and any(LOGIN.fullmatch(word) for word in words[1:3]) for words in parts if words
    )


def _filled(command: str, env: dict[str, str]) -> str:
    """The source with the values of variables that are plain words."""

    def value(match: re.Match[str]) -> str:
        known = env.get(match[1] or match[2], "")
        return known if re.fullmatch(r"[\w./-]+", known) else match[0]

    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", value, command)


def _first(word: str, folder: str, entry: HookEntry, env: dict[str, str], dispatches: bool) -> Iterator[Trouble]:
    """A word that a program or file is run by. dispatches: a file needs neither execute bit nor line ends of Unix."""
    if "/" in word:
        yield from _file(word, folder, env, dispatches)
    elif (
        (entry.args is not None or word not in BUILTINS | KEYWORDS)
        and not _defined(word, entry)
        and not _which(word, env)
    ):
        yield (
            f"there is no program {word} on the PATH",
            "install it, or give its whole path, or ask for it first: `command -v`",
        )


def _defined(word: str, entry: HookEntry) -> bool:
    """Whether the source itself makes a function or alias of that name."""
    name = re.escape(word)
    return bool(re.search(rf"\b{name}\s*\(\)|\b(?:function|alias)\s+{name}\b", entry.command))


def _which(word: str, env: dict[str, str]) -> str | None:
    return shutil.which(word, path=env.get("PATH", ""))


def _file(word: str, folder: str, env: dict[str, str], dispatches: bool) -> Iterator[Trouble]:
    path = os.path.join(folder, word)
    if not os.path.exists(path):
        hint = "" if os.path.isabs(word) else f"it is looked for in {os.path.normpath(folder)}"
        yield f"there is no {word}", hint
        return
    if os.path.isdir(path):
        yield f"{word} is a folder", "name the script in it"
        return
    if not dispatches and not os.access(path, os.X_OK):
        yield f"{word} is not executable", f"chmod +x {word}"
    yield from find_shebang_problems(word, path, env, kernel=not dispatches)


def find_shebang_problems(word: str, path: str, env: dict[str, str], *, kernel: bool = True) -> Iterator[Trouble]:
    """Why the interpreter that a script names cannot run it. kernel: it is started as a file, not by a shell that looks for itself."""
    try:
        with open(open_regular(path), "rb") as file:
            head = file.read(script_probe.WINDOW)
    except OSError:
        return
    if not head.startswith(b"#!"):
        return
    if kernel and b"\r" in head.partition(b"\n")[0]:
        yield f"{word} has line ends of Windows, so its interpreter is not found", f"sed -i 's/\\r$//' {word}"
        return
    try:
        program = script_probe.read_shebang(head).program
    except BadScript as error:
        if not kernel:
            yield f"{word}: {error.message}", "the first line names the interpreter: #!/usr/bin/env python3"
        return
    is_installed = os.path.exists(program) if "/" in program else bool(_which(program, env))
    if not is_installed and (kernel or not _which(os.path.basename(program), env)):
        yield f"the interpreter of {word}, {program}, is not there", "install it, or change the first line"


def _script(words: Sequence[str], cwd: Path, env: dict[str, str], project: Path) -> Iterator[Trouble]:
    """The file that an interpreter is given."""
    if not words or not RUNNERS.fullmatch(base_name(words[0])):
        return
    for word in words[1:]:
        if word.startswith("-"):
            if word in ("-c", "-m", "-e", "-lc", "-ic"):
                return
            continue
        path = cwd / word
        if (SCRIPT.fullmatch(word) or "/" in word) and "$" not in word:
            if not path.exists():
                yield f"there is no {word}", "" if os.path.isabs(word) else f"it is looked for in {cwd}"
            elif text := find_script_error(words[0], path, env, project):
                yield f"{word} cannot be read: {text}", ""
        return
