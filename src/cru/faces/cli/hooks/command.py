"""`cru hooks`: what there is, what may run, and why something did or did not (docs/hooks.md)."""

from __future__ import annotations

import shlex
from importlib import import_module

from cru.core.base.config.closest import closest
from cru.faces.cli.flag_places import command_or_prompt
from cru.faces.cli.flags import Parsed, UsageProblem

HELP = """\
cru hooks list                every command hook: id, state and why, event, matcher, command, file and line; behind them the handlers of
                              plugins (--json, --all)
cru hooks review              show each hook that awaits trust, and what it runs; accept or refuse it
                              (without a terminal: --trust ID@DIGEST, --refuse ID)
cru hooks enable|disable ID   use a hook again, or leave it out, whatever file it stands in
cru hooks check               read all files without running anything; say what is odd
cru hooks why [EVENT] [TOOL]  which hooks ran in the last turn, which did not, and why; those of plugins that are programs too (pre_tool, …)
cru hooks log [ID]            what hooks did, newest last
cru hooks test EVENT          run the hooks of an event for real, without a model
"""
# Verb → module with a function `command(parsed, words) -> exit status`; `words` follow the verb.
VERBS: dict[str, str] = {
    "list": "cru.faces.cli.hooks.listing",
    "review": "cru.faces.cli.hooks.review",
    "enable": "cru.faces.cli.hooks.switch",
    "disable": "cru.faces.cli.hooks.switch",
    "check": "cru.faces.cli.hooks.check",
    "why": "cru.faces.cli.hooks.why",
    "log": "cru.faces.cli.hooks.log",
    "test": "cru.faces.cli.hooks.dry_run",
}

# Words of other programs → what does that here.
INSTEAD: dict[str, str] = {
    **dict.fromkeys(("revoke", "forget", "untrust"), "`cru trust --revoke` forgets a project; `cru hooks disable ID` leaves one out"),
    **dict.fromkeys(("remove", "rm", "delete"), "`cru hooks disable ID` leaves one out; its file is yours to change"),
    **dict.fromkeys(("trust", "accept", "approve"), "`cru hooks review` shows each hook first, and takes your answer"),
    **dict.fromkeys(("add", "new", "create"), "hooks are entries of ~/.cru/hooks.json: docs/hooks.md, \"The first hook\""),
}  # fmt: skip


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem if the words do not fit it."""
    verb = next(iter(words), "list")
    if verb in ("--help", "-h"):
        print(HELP, end="")
        return 0
    if verb.startswith("-"):
        verb, words = "list", ("list", *words)
    if verb not in VERBS:
        raise _unknown(verb, words)
    module = import_module(VERBS[verb])
    if not hasattr(module, "HELP") and not {"--help", "-h"}.isdisjoint(words):
        print(_verb_help(verb), end="")
        return 0
    code: int = module.command(parsed, words[1:] if VERBS[verb] != "cru.faces.cli.hooks.switch" else words)
    return code


def _verb_help(verb: str) -> str:
    """What is said of a verb, to the next one's line."""
    text, is_verb = "", False
    for line in HELP.splitlines(keepends=True):
        is_verb = verb in line[:32] if line.startswith("cru") else is_verb
        text += line if is_verb else ""
    return text


def _unknown(verb: str, words: tuple[str, ...]) -> UsageProblem:
    """The error for a word that is no verb: the closest one, what else does that, or all that there are."""
    if verb in INSTEAD:
        return UsageProblem(f"`cru hooks` does not take {verb}", INSTEAD[verb])
    near = closest(verb, VERBS)
    if near:
        return UsageProblem(
            f"`cru hooks` does not take {verb}", command_or_prompt(("hooks", near, *words[1:]), ("hooks", *words))
        )
    prompt = shlex.join(("cru", "--", "hooks", *words))
    return UsageProblem(f"`cru hooks` does not take {verb}", f"it takes: {', '.join(VERBS)}\nas a prompt: {prompt}")
