"""`cru hooks`: what there is, what may run, and why something did or did not (docs/hooks.md)."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from cru.faces.cli.arguments import Arguments
from cru.faces.cli.flags import Parsed, UsageProblem

HELP = """\
cru hooks list                every command hook: id, state and why, event, matcher, command, file and line (--json, --all)
cru hooks review              show each hook that awaits trust, and what it runs; accept or refuse it
                              (without a terminal: --trust ID@DIGEST, --refuse ID)
cru hooks enable|disable ID   use a hook again, or leave it out, whatever file it stands in
cru hooks check               read all files without running anything; say what is odd
cru hooks why [EVENT] [TOOL]  which hooks ran in the last turn, which did not, and why
cru hooks log [ID]            what hooks did, newest last
cru hooks test EVENT          run the hooks of an event for real, without a model
"""
# Verb → module of this folder with a function `command(parsed, words) -> exit status`; `words` follow the verb.
VERBS: dict[str, str] = {
    "list": "hooks_list",
    "review": "hooks_review",
    "enable": "hooks_switch",
    "disable": "hooks_switch",
    "check": "hooks_check",
    "why": "hooks_why",
    "log": "hooks_log",
    "test": "hooks_test",
}


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem if the words do not fit it."""
    verb = next(iter(words), "list")
    if verb in ("--help", "-h"):
        print(HELP, end="")
        return 0
    if verb.startswith("-"):
        verb, words = "list", ("list", *words)
    if verb not in VERBS:
        raise Arguments("hooks", words, verbs=tuple(VERBS), most=len(words)).wrong(f"`cru hooks` does not take {verb}")
    module = f"cru.faces.cli.{VERBS[verb]}"
    if find_spec(module) is None:
        raise UsageProblem(f"`cru hooks {verb}`: not available yet", "cru hooks --help lists what there is")
    code: int = import_module(module).command(parsed, words[1:] if VERBS[verb] != "hooks_switch" else words)
    return code
