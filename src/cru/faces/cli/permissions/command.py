"""`cru permissions`: the rules in force, what would happen to a call, and taking back what was permitted (docs/permissions.md)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from msgspec.structs import replace

from cru.core.base.values.errors import CruError
from cru.core.commands import permissions as texts
from cru.core.compose import SessionBundle, build
from cru.core.events.bus import Bus
from cru.core.events.stream import Notice, Published
from cru.core.guard.rules.listing import describe_rule, list_rules
from cru.core.guard.rules.modes import MODE_DESCRIPTIONS, MODES, check_mode
from cru.core.tools.builtin import TABLE
from cru.core.turn.parts import Parts
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import ExitStatus, complain, show
from cru.faces.cli.event_loop import run_interruptible
from cru.faces.cli.flags import Parsed, UsageProblem
from cru.faces.cli.run_options import context_name, open_home, start_of

HELP = """\
cru permissions                     every rule in force: what it decides, whose it is, file and line (--json)
cru permissions test TOOL DETAIL    what would happen to a call, and which rule or mode decides: test bash 'git push',
                                    test write src/x.py, test mcp__srv__tool '{"a":1}'; arguments as JSON do for every tool
                                    --mode MODE judges as in that mode; --json; status 0 allow, 3 deny, 6 ask
cru permissions revoke RULE         take back what an answer, or a hook, allows by this rule
"""
VERBS = ("test", "revoke")
MOST_FREE = {"test": 2, "revoke": 1}
SWITCHES = ("--json", "--mode", "--help", "-h")
ASKED = 6
"""The exit status of a call that needs a question."""
STATUSES = {"allow": ExitStatus.DONE, "deny": ExitStatus.DENIED, "ask": ASKED}


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem if the words do not fit it."""
    own, free = _split_words(words)
    args = CommandArguments(
        "permissions", own, help=HELP, switches=("--json",), values=("--mode",), verbs=VERBS, most=1, beside=free
    )
    if args.show_help():
        return 0
    verb = "".join(args.words)
    if verb == "test" and not free:
        raise UsageProblem(
            "`cru permissions test` needs a tool and what the call is about", "cru permissions test bash 'git push'"
        )
    if verb == "revoke" and not free:
        raise UsageProblem("`cru permissions revoke` needs one rule", "cru permissions revoke 'bash:make test'")
    with _parts(parsed, args.value("--mode", "")) as built:
        parts, as_json = built.session.parts, args.has("--json")
        if verb == "test":
            return _test(parts, free[0], free[1] if len(free) > 1 else "", as_json)
        if verb == "revoke":
            for line in texts.revoke(parts, free[0]):
                show(line)
            return 0
        return _list(built, as_json)


def _split_words(words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The verb with the switches, and what is about a call or a rule, which may begin with a dash; a tool does not."""
    at = next((at for at, word in enumerate(words) if word in VERBS), len(words))
    own, rest = list(words[: at + 1]), list(words[at + 1 :])
    free: list[str] = []
    most = MOST_FREE.get(own[-1], 0) if own else 0
    while rest:
        if rest[0] in SWITCHES or rest[0].startswith("--mode=") or len(free) == most:
            count = 2 if rest[0] == "--mode" else 1
            own += rest[:count]
            del rest[:count]
        elif own[-1] == "test" and not free and rest[0].startswith("-"):
            own.append(rest.pop(0))
        else:
            free.append(rest.pop(0))
    return tuple(own), tuple(free)


@contextmanager
def _parts(parsed: Parsed, mode: str) -> Iterator[SessionBundle]:
    """The parts of a session, built as for a run; no handler and no model is asked."""
    start = start_of(parsed, context_name(parsed, open_home(parsed)))
    if mode:
        check_mode(mode)
        start = replace(start, overrides={**start.overrides, "mode": mode})

    def tell(item: Published[Notice]) -> None:
        if item.payload.level != "info":
            complain(item.payload.text)

    def watch(bus: Bus) -> None:
        bus.stream.subscribe(tell, Notice)

    built = build(start, watch=watch)
    try:
        open_sandbox(built.session.parts)
        yield built
        for problem in built.session.parts.gate.take_problems():
            complain(problem)
    finally:
        built.store.close()


def _list(built: SessionBundle, as_json: bool) -> int:
    parts, origin = built.session.parts, built.settings.origin("mode")
    if not as_json:
        for line in texts.overview_lines(parts, origin):
            show(line)
        return 0
    gate = parts.gate
    overview = {
        "mode": {"name": gate.mode, "from": origin, "about": MODE_DESCRIPTIONS[gate.mode], "kinds": MODES[gate.mode]},
        "rules": list_rules(gate, (*TABLE, *parts.tools.names())), "project": gate.places.root, "folders": gate.places.folders,
        "protected": texts.PROTECTED, "later": texts.LATER,
        "handlers": texts.guard_owners(parts.bus), "is_sandboxed": gate.outside is not None,
    }  # fmt: skip
    show(msgspec.json.encode(overview).decode())
    return 0


def _test(parts: Parts, tool: str, detail: str, as_json: bool) -> int:
    trial = texts.try_call(parts, tool, detail)
    if as_json:
        show(msgspec.json.encode(_encodable(parts, trial)).decode())
    else:
        for line in texts.verdict_lines(parts.gate, trial):
            show(line)
        guards = texts.guard_owners(parts.bus)
        if guards and trial.verdict.decision != "deny":
            show(f"  a run asks these, too: {', '.join(guards)}")
    return STATUSES[trial.verdict.decision]


def _encodable(parts: Parts, trial: texts.CallTrial) -> dict[str, object]:
    question, verdict, judged = trial.request, trial.verdict, trial.parts
    return {
        "tool": trial.name, "kind": question.kind, "detail": question.detail, "decision": verdict.decision,
        "reason": verdict.reason, "mode": parts.gate.mode, "note": trial.note, "handlers": texts.guard_owners(parts.bus),
        "by": texts.describe_decider(parts.gate, question, verdict),
        "rule": None if verdict.source is None else describe_rule(verdict.source, verdict.decision),
        "parts": [
            {"text": part.text, "decision": part.decision, "reason": part.reason, "rule": part.rule.text if part.rule else ""}
            for part in (judged.parts if judged else ())
        ],
        "unclear": judged.unclear if judged else "",
    }  # fmt: skip


def open_sandbox(parts: Parts) -> None:
    """Find the sandbox as a run would, for what is shown of a session that has not begun; warn if it does not work."""
    opening = parts.services.sandbox.open
    if opening is None:
        return
    try:
        run_interruptible(opening(parts))
    except CruError as error:
        complain(f"{error.message} ({error.hint})" if error.hint else error.message)
