"""What happened in a turn, moment by moment: out of the trace, and of the journal what handlers did."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from cru.core.conversations.entries import LogProblem
from cru.core.events.answers import Answer
from cru.core.events.journal import HandlerRecord, JournalLine, SkipKind
from cru.core.records.requests import TraceLine
from cru.core.records.trace import read_dispatches
from cru.core.records.usage import decode_usage, describe_tokens
from cru.core.turn.spending import format_cost

SLACK_SECONDS = 0.05
"""A dispatch may be written down so long before or after the turn it belongs to."""


class TurnMoment(Struct, frozen=True):
    """One thing that happened.

    time: Unix seconds
    what: leg, state, request, reply, fallback, tool, person (a wait for an answer), end, events (how many of each) or event (what a
        handler did)
    text: the rest of it, for a person
    """

    time: float
    what: str
    text: str


def read_moments(folder: Path, turn: list[TraceLine], problems: list[LogProblem]) -> list[TurnMoment]:
    """Everything that happened in a turn of a context, in order of time. What is wrong with lines of the journal is added to `problems`."""
    moments: list[TurnMoment] = []
    began = 0.0
    for line in turn:
        if line.kind == "leg":
            began = line.data["time"]
        moments += _from_trace(line, began)
    runs = {line.data["run"] for line in turn if line.kind == "leg"}
    if runs:
        first = min(moment.time for moment in moments) - SLACK_SECONDS
        last = max(moment.time for moment in moments) + SLACK_SECONDS
        events = [moment for moment in _from_journal(folder, runs, problems) if first <= moment.time <= last]
        moments += reversed(events)
    return sorted(moments, key=lambda moment: moment.time)


def _from_trace(line: TraceLine, began: float) -> Iterator[TurnMoment]:
    """`began`: when the leg did."""
    data = line.data
    if line.kind == "leg":
        yield TurnMoment(began, "leg", f"source {data['source']}")
    elif line.kind == "states":
        for name, ms in data["at"]:
            yield TurnMoment(began + ms / 1000, "state", name)
    elif line.kind == "waits":
        for time, what, name, outcome, ms in data["at"]:
            yield TurnMoment(time, what, f"{name}: {outcome or 'done'}, {ms} ms")
    elif line.kind == "request":
        category = f" (category {data['category']})" if data.get("category") else ""
        text = f"{data['n']}: {data['provider']}:{data['model']}{category}, {data['bytes']} bytes"
        yield TurnMoment(data["time"], "request", text)
    elif line.kind == "reply":
        usage = decode_usage(data["usage"])
        cost = f", {format_cost(usage.cost)}" if usage.cost is not None else ""
        text = f"{data['n']}: {data['ms']} ms, {data['error'] or data['reason']}, {describe_tokens(usage)}{cost}"
        yield TurnMoment(data["time"], "reply", text)
    elif line.kind == "fallback":
        text = f"{data['n']}: {data['failed']} failed ({data['why']}), {data['next']} answers instead"
        yield TurnMoment(data["time"], "fallback", text)
    elif line.kind == "end":
        counts = ", ".join(f"{name} {count}" for name, count in data["counts"].items())
        yield TurnMoment(data["time"], "end", f"{data['cause']} {data['error']}".strip())
        yield TurnMoment(data["time"], "events", counts)


def _from_journal(folder: Path, runs: set[str], problems: list[LogProblem]) -> Iterator[TurnMoment]:
    """The dispatches of these runs that had handlers, the newest first."""
    for line in read_dispatches(folder, runs, problems):
        texts = [TurnMoment(line.time, "event", text) for _, text in describe_handlers(line)]
        yield from reversed(texts)


def describe_handlers(line: JournalLine) -> Iterator[tuple[HandlerRecord, str]]:
    """What each handler of a dispatch did, in words."""
    event = f"{line.event} {line.ident}".rstrip()
    for heard in line.heard:
        if heard.hook and heard.skip is not None and heard.skip.kind == SkipKind.OTHER_EVENT:
            continue  # none of the moments that this hook of a program means
        result = "; ".join(_outcome_words(heard)) or "pass"
        yield heard, f"{event} → {heard.owner} {heard.where}: {result} ({heard.ms or 0} ms)".replace(" :", ":")


def _outcome_words(heard: HandlerRecord) -> Iterator[str]:
    if heard.skipped:
        yield f"skipped: {heard.skipped}"
    if heard.error:
        yield f"failed: {heard.error}"
    yield from _answer_words(heard.answer)
    yield from (f"refused: {why}" for why in heard.rejected)


def _answer_words(answer: Answer) -> list[str]:
    words: list[str] = [answer.decision] if answer.decision != "none" else []
    words += ["halt"] if answer.halt else []
    words += [repr(answer.reason)] if answer.reason else []
    words += [f"{change.op} {change.field}" for change in answer.changes]
    words += [key for key in ("inject", "result") if getattr(answer, key)]
    words += [f"outcome {answer.outcome.kind} {answer.outcome.reason!r}"] if answer.outcome is not None else []
    if answer.context:
        size = sum(len(text.encode()) for text in answer.context)
        words.append(f"context, about {-(-size // 4)} tokens")
    return words
