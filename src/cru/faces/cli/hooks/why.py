"""`cru hooks why`: what every hook did in the last turn, or why it did nothing."""

from __future__ import annotations

import time

from cru.core.conversations.reported import report_once
from cru.core.hooks.records import masked_json
from cru.core.hooks.report import query as spoken
from cru.core.hooks.report import turn_history, why
from cru.core.hooks.report.why import DispatchExplanation, HookExplanation, TurnExplanation
from cru.core.tools.secret_variables import masked
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import one_line, say, show
from cru.faces.cli.flags import Parsed
from cru.faces.cli.hooks.inventory import load_inventory
from cru.faces.cli.run_options import context_name, open_home

HELP = """\
cru hooks why [EVENT] [TOOL]   what every hook did in the last turn, or why it did nothing; EVENT and TOOL in the words of any system,
                               hooks of plugins that are programs (pre_tool, …) and handlers of plugins too
cru hooks why --turn N         the same of an earlier turn (1 = the oldest that is recorded, -1 = the last)
cru hooks why --json           the same for programs
"""
LONG = 160


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """Raises NoSuchName, NotInTrace."""
    args = CommandArguments(
        "hooks", ("why", *words), values=("--turn",), help=HELP, switches=("--json",), verbs=("why",), most=3
    )
    if args.show_help():
        return 0
    home = open_home(parsed)
    name = context_name(parsed, home)
    inventory = load_inventory(parsed)
    store = home.open(name) if home.exists(name) else None
    turn = turn_history.read_turn(store, args.number("--turn", -1)) if store is not None else None
    called = [call.name for call in turn.calls] if turn is not None else []
    query = spoken.parse_query(args.words[1:], inventory.dialects, called)
    if store is None or turn is None:
        show(f"no turn is recorded in the context {name}; `cru hooks list` shows what there is")
        return 0
    for problem in report_once(store.folder, turn.problems):
        say(f"cru: {problem.text(store.folder)}")
    explanation = why.explain_turn(turn, inventory, query)
    if args.has("--json"):
        show(masked_json(explanation))
        return 0
    for line in render_explanation(explanation, f"{turn.number} of {turn.last}"):
        show(line)
    return 0


def render_explanation(explanation: TurnExplanation, place: str) -> list[str]:
    """The story for people."""
    time_text = time.strftime("%H:%M:%S", time.localtime(explanation.began))
    prompt = one_line(masked(explanation.prompt), 60)
    lines = [f"turn {place}, {time_text}, “{prompt}”: {explanation.cause or 'not finished'}"]
    lines += [one_line(masked(remark)) for remark in explanation.remarks]
    for item in explanation.occasions:
        lines += ["", *_render_dispatch(item)]
    if explanation.silent:
        lines += ["", "did not fire:"]
        lines += [f"  {_name(item)}: {_times(item)}{_short(item.text)}" for item in explanation.silent]
    if not explanation.occasions and not explanation.silent:
        lines.append("there is no hook for this")
    return lines


def _render_dispatch(item: DispatchExplanation) -> list[str]:
    head = f"{item.event} {_short(item.what)}".rstrip()
    lines = [f"{head}  (#{item.seq})", *(f"  {_short(text)}" for text in item.outcome)]
    lines += [f"  the call: {_short(item.fate)}"] if item.fate else []
    return lines + [
        f"    {_name(hook)}: {'' if hook.fired else 'did not fire: '}{_short(hook.text)}" for hook in item.hooks
    ]


def _name(hook: HookExplanation) -> str:
    if not hook.dialect:
        return hook.label
    label = "" if hook.label == hook.id else f" {one_line(masked(hook.label), 40)}"
    return f"{hook.id}{label} ({hook.dialect} {hook.event}, {one_line(hook.where)})"


def _times(hook: HookExplanation) -> str:
    return f"{hook.times} times: " if hook.times > 1 else ""


def _short(text: str) -> str:
    return one_line(masked(text), LONG)
