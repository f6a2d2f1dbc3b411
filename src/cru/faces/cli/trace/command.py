"""`cru trace`: what happened in a turn, what was sent, what would be sent."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from cru.core.agents.usage import of_turn, read_usages, sum_usages
from cru.core.base.net.transport import Transport
from cru.core.conversations.entries import LogProblem
from cru.core.conversations.reported import report_once
from cru.core.conversations.store import FileContext
from cru.core.models import ModelSettings
from cru.core.models.protocol import Model
from cru.core.models.registry import ModelChoice, build_model
from cru.core.records import requests as rebuild
from cru.core.records.requests import TraceLine
from cru.core.records.trace import RecordedTrace, pick_turn
from cru.core.records.usage import describe_cost, describe_tokens, requests_of, sum_up
from cru.core.turn.recorder import RequestLine
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import one_line, say, show
from cru.faces.cli.flags import Parsed
from cru.faces.cli.run_options import context_name, open_home, start_of
from cru.faces.cli.trace.moments import TurnMoment, read_moments
from cru.faces.cli.trace.next_request import show_next

WIDTH, MARGIN = 100, " " * 26
HELP = """\
cru trace                what happened in the last turn: states, requests, events, handlers, answers, milliseconds
cru trace [--turn] N     the same of an earlier turn (1 = the oldest that is recorded, -1 = the last); a compaction by hand has
                         a number too
cru trace --request N    exactly what was sent in the turn's Nth request
cru trace --next         what would be sent now: every section with origin and size
cru trace --json         any of these as JSON
"""


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem if the words do not fit it."""
    if words and words[0].isdecimal():
        words = ("--turn", *words)
    args = CommandArguments("trace", words, values=("--request", "--turn"), help=HELP, switches=("--next", "--json"))
    if args.show_help():
        return 0
    home = open_home(parsed)
    name = context_name(parsed, home)
    as_json = args.has("--json")
    if args.has("--next"):
        return show_next(start_of(parsed, name), as_json)
    store = home.open(name) if home.exists(name) else None
    if store is None:
        show(f"no turn is recorded in the context {name}")
        return 0
    with RecordedTrace(store.folder) as trace:
        return _show_turn(store, trace, args, as_json)


def _show_turn(store: FileContext, trace: RecordedTrace, args: CommandArguments, as_json: bool) -> int:
    _tell(store, trace.problems)
    if not trace.turns:
        show(f"no turn is recorded in the context {store.name}")
        return 0
    at = pick_turn(trace.turns, args.number("--turn", -1))
    lines = _lines_of(store, trace, at)
    if not args.has("--request"):
        return _turn(store, lines, f"{at + 1} of {len(trace.turns)}", as_json)
    if not any(line.kind == "request" for line in lines):
        raise _no_requests(trace, at)
    return _request(store, lines, args.number("--request", 0), as_json)


def _lines_of(store: FileContext, trace: RecordedTrace, at: int) -> list[TraceLine]:
    """The lines of a turn, as far as they can be read; the others are told."""
    known = len(trace.problems)
    lines = trace.lines(trace.turns[at])
    _tell(store, trace.problems[known:])
    return lines


def _tell(store: FileContext, problems: Iterable[LogProblem]) -> None:
    for text in _problem_texts(store, problems):
        say(f"cru: {text}")


def _problem_texts(store: FileContext, problems: Iterable[LogProblem]) -> list[str]:
    """Those that nobody was told of yet."""
    return [problem.text(store.folder) for problem in report_once(store.folder, problems)]


def render_turn(store: FileContext, number: int) -> str:
    """What `cru trace --turn` shows. Raises NotInTrace."""
    with RecordedTrace(store.folder) as trace:
        if not trace.turns:
            skipped = _problem_texts(store, trace.problems)
            return "\n".join([*skipped, f"no turn is recorded in the context {store.name}"])
        at = pick_turn(trace.turns, number)
        lines = trace.lines(trace.turns[at])
        moments = read_moments(store.folder, lines, trace.problems)
        shown = [*_render(store.folder, lines, moments, f"{at + 1} of {len(trace.turns)}")]
        return "\n".join([*_problem_texts(store, trace.problems), *shown])


def _no_requests(trace: RecordedTrace, at: int) -> rebuild.NotInTrace:
    """The error that names the nearest turn that made some."""
    near = min(trace.turns_with_requests(), key=lambda number: abs(number - at), default=-1) + 1
    hint = f"turn {near} did: cru trace --turn {near} --request 1" if near else "no turn that is recorded made one"
    return rebuild.NotInTrace(f"turn {at + 1} made no request: tools by hand (-p, -P) make none", hint)


def _request(store: FileContext, turn: list[TraceLine], number: int, as_json: bool) -> int:
    line = rebuild.request_line(turn, number)
    request = rebuild.rebuild_request(line, store.streamed(), store.folder)
    body, is_same = rebuild.encode_request(line, request, _encoder(line))
    if not is_same:
        say("cru: the rebuilt request differs from what was sent (SHA-256); log or version changed since")
    if as_json:
        sys.stdout.buffer.write(body + b"\n")
        return 0 if is_same else 1
    check = "as sent" if is_same else "NOT as sent"
    show(f"request {number}: {line.provider}:{line.model}, {line.bytes} bytes, sha256 {line.sha[:16]}… ({check})")
    if line.changed_by:
        show(f"  messages replaced for this request by {line.changed_by}: the prompt cache breaks here")
    show(msgspec.json.format(body, indent=2).decode())
    return 0 if is_same else 1


def _encoder(line: RequestLine) -> Model:
    """The adapter that encoded it; it has no key, and nothing is sent."""
    choice = ModelChoice(line.provider, line.model, line.base_url, line.parameters)
    return build_model(choice, ModelSettings(), {}, Transport())


def _turn(store: FileContext, turn: list[TraceLine], place: str, as_json: bool) -> int:
    problems: list[LogProblem] = []
    moments = read_moments(store.folder, turn, problems)
    _tell(store, problems)
    if as_json:
        for moment in moments:
            show(msgspec.json.encode(moment).decode())
        return 0
    for line in _render(store.folder, turn, moments, place):
        show(line)
    return 0


def _render(folder: Path, turn: list[TraceLine], moments: list[TurnMoment], place: str) -> Iterator[str]:
    """A turn for people, line by line."""
    yield _headline(turn, place)
    yield from _agents_line(folder, turn[0].turn)
    begin = moments[0].time if moments else 0.0
    for moment in moments:
        text = one_line(moment.text)
        if moment.what == "events":
            text = textwrap.fill(text, WIDTH, initial_indent=MARGIN, subsequent_indent=MARGIN).lstrip()
        yield f"{(moment.time - begin) * 1000:10.1f} ms  {moment.what:<10} {text}"


def _agents_line(folder: Path, turn: str) -> Iterator[str]:
    """What the sub-agents of a turn have used, if there were any."""
    usages = of_turn(read_usages(folder), turn)
    totals = sum_usages(usages)
    if usages:
        what = "1 sub-agent" if len(usages) == 1 else f"{len(usages)} sub-agents"
        requests = f"{totals.requests} request{'' if totals.requests == 1 else 's'}"
        yield f"{what}: {requests}; {describe_tokens(totals)}, {describe_cost(totals)} (`cru tasks`)"


def _headline(turn: list[TraceLine], place: str) -> str:
    requests = [line for line in turn if line.kind == "request"]
    count = f"{len(requests)} request{'' if len(requests) == 1 else 's'}"
    if not turn[0].turn:
        purposes = dict.fromkeys(line.data.get("purpose") or "requests" for line in requests)
        return f"{', '.join(purposes)}: {count} outside of a turn ({place})"
    ends = [line.data["cause"] for line in turn if line.kind == "end"]
    used = (
        f"; {describe_tokens(totals)}, {describe_cost(totals)}"
        if (totals := sum_up(requests_of(turn))).requests
        else ""
    )
    return f"turn {place} ({turn[0].turn}): {count}, {', '.join(ends) or 'not finished (cru --resume)'}{used}"
