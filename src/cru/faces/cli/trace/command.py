"""`cru trace`: what happened in a turn, what was sent, what would be sent."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from cru.contexts.home import Home
from cru.contexts.store import FileContext
from cru.engine import rebuild
from cru.engine.rebuild import TraceLine
from cru.engine.recorder import RequestLine
from cru.events.journal import SkipKind
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import one_line, say, show
from cru.faces.cli.flags import Parsed
from cru.faces.cli.run_options import context_name, home_path, start_of

WIDTH, MARGIN = 100, " " * 26
HELP = """\
cru trace                what happened in the last turn: states, requests, events, handlers, answers, milliseconds
cru trace --turn N       the same of an earlier turn (1 = the oldest that is recorded, -1 = the last); a compaction by hand has
                         a number too
cru trace --request N    exactly what was sent in the turn's Nth request
cru trace --next         what would be sent now: every section with origin and size
cru trace --json         any of these as JSON
"""


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem if the words do not fit it."""
    args = CommandArguments("trace", words, values=("--request", "--turn"), help=HELP, switches=("--next", "--json"))
    if args.show_help():
        return 0
    home = Home(home_path(parsed))
    name = context_name(parsed, home)
    as_json = args.has("--json")
    if args.has("--next"):
        from cru.faces.cli.trace.next_request import show_next

        return show_next(start_of(parsed, name), as_json)
    store = home.open(name) if home.exists(name) else None
    lines, problems = rebuild.read_trace(store.folder / "trace.jsonl") if store is not None else ([], [])
    for problem in problems:
        say(f"cru: {problem} (skipped)")
    turns = _turns(lines)
    if store is None or not turns:
        show(f"no turn is recorded in the context {name}")
        return 0
    at = _pick(turns, args.number("--turn", -1))
    if args.has("--request"):
        _require_requests(turns, at)
        return _request(store, turns[at], args.number("--request", 0), as_json)
    return _turn(store, turns[at], f"{at + 1} of {len(turns)}", as_json)


def render_turn(store: FileContext, number: int) -> str:
    """What `cru trace --turn` shows. Raises NotInTrace."""
    lines, problems = rebuild.read_trace(store.folder / "trace.jsonl")
    skipped = [f"{problem} (skipped)" for problem in problems]
    turns = _turns(lines)
    if not turns:
        return "\n".join([*skipped, f"no turn is recorded in the context {store.name}"])
    at = _pick(turns, number)
    return "\n".join([*skipped, *_shown(turns[at], _moments(store.folder, turns[at]), f"{at + 1} of {len(turns)}")])


def _turns(lines: list[TraceLine]) -> list[list[TraceLine]]:
    """Turns in order, the oldest first; what was asked of a model outside of any (`cru -z`) stands between them."""
    found: dict[str, list[TraceLine]] = {}
    outside = 0
    for line in lines:
        if not line.turn and line.kind == "request" and line.data["n"] == 1:
            outside += 1
        found.setdefault(line.turn or f"#{outside}", []).append(line)
    return list(found.values())


def _pick(turns: list[list[TraceLine]], number: int) -> int:
    at = number - 1 if number > 0 else len(turns) + number
    if number == 0 or not 0 <= at < len(turns):
        raise rebuild.NotInTrace(
            f"there is no turn {number}", f"{len(turns)} are recorded, the oldest is 1, the last -1"
        )
    return at


def _require_requests(turns: list[list[TraceLine]], at: int) -> None:
    """Raises NotInTrace, with the nearest turn that made some."""
    made = [number for number, turn in enumerate(turns) if any(line.kind == "request" for line in turn)]
    if at in made:
        return
    near = min(made, key=lambda number: abs(number - at), default=-1) + 1
    hint = f"turn {near} did: cru trace --turn {near} --request 1" if near else "no turn that is recorded made one"
    raise rebuild.NotInTrace(f"turn {at + 1} made no request: tools by hand (-p, -P) make none", hint)


def _request(store: FileContext, turn: list[TraceLine], number: int, as_json: bool) -> int:
    line = rebuild.request_line(turn, number)
    store.refresh()
    made = rebuild.rebuild_request(line, store.everything(), store.folder)
    body, same = rebuild.encode_request(line, made, _encoder(line))
    if not same:
        say("cru: the rebuilt request differs from what was sent (SHA-256); log or version changed since")
    if as_json:
        sys.stdout.buffer.write(body + b"\n")
        return 0 if same else 1
    check = "as sent" if same else "NOT as sent"
    show(f"request {number}: {line.provider}:{line.model}, {line.bytes} bytes, sha256 {line.sha[:16]}… ({check})")
    if line.changed_by:
        show(f"  messages replaced for this request by {line.changed_by}: the prompt cache breaks here")
    show(msgspec.json.format(body, indent=2).decode())
    return 0 if same else 1


def _encoder(line: RequestLine) -> Any:
    """The adapter that encoded it; it has no key, and nothing is sent."""
    from cru.models.registry import ModelChoice, build_model
    from cru.models.settings import ModelSettings
    from cru.net.transport import Transport

    choice = ModelChoice(line.provider, line.model, line.base_url, line.parameters)
    return build_model(choice, ModelSettings(), {}, Transport())


def _turn(store: FileContext, turn: list[TraceLine], place: str, as_json: bool) -> int:
    moments = _moments(store.folder, turn)
    if as_json:
        for moment in moments:
            show(msgspec.json.encode(moment).decode())
        return 0
    for line in _shown(turn, moments, place):
        show(line)
    return 0


def _shown(turn: list[TraceLine], moments: list[dict[str, Any]], place: str) -> Iterator[str]:
    """A turn for people, line by line."""
    yield _headline(turn, place)
    begin = moments[0]["time"] if moments else 0.0
    for moment in moments:
        text = one_line(moment["text"])
        if moment["what"] == "events":
            text = textwrap.fill(text, WIDTH, initial_indent=MARGIN, subsequent_indent=MARGIN).lstrip()
        yield f"{(moment['time'] - begin) * 1000:10.1f} ms  {moment['what']:<10} {text}"


def _headline(turn: list[TraceLine], place: str) -> str:
    requests = [line for line in turn if line.kind == "request"]
    count = f"{len(requests)} request{'' if len(requests) == 1 else 's'}"
    if not turn[0].turn:
        purposes = dict.fromkeys(line.data.get("purpose") or "requests" for line in requests)
        return f"{', '.join(purposes)}: {count} outside of a turn ({place})"
    ends = [line.data["cause"] for line in turn if line.kind == "end"]
    return f"turn {place} ({turn[0].turn}): {count}, {', '.join(ends) or 'not finished (cru --resume)'}"


def _moments(folder: Path, turn: list[TraceLine]) -> list[dict[str, Any]]:
    """Everything that happened, in order of time."""
    found: list[dict[str, Any]] = []
    began = 0.0
    for line in turn:
        data = line.data
        if line.kind == "leg":
            began = data["time"]
            found.append(_moment(began, "leg", f"source {data['source']}"))
        elif line.kind == "states":
            found += [_moment(began + ms / 1000, "state", name) for name, ms in data["at"]]
        elif line.kind == "request":
            found.append(
                _moment(
                    data["time"], "request", f"{data['n']}: {data['provider']}:{data['model']}, {data['bytes']} bytes"
                )
            )
        elif line.kind == "reply":
            found.append(_moment(data["time"], "reply", _reply(data)))
        elif line.kind == "end":
            counts = ", ".join(f"{name} {n}" for name, n in data["counts"].items())
            found.append(_moment(data["time"], "end", f"{data['cause']} {data['error']}".strip()))
            found.append(_moment(data["time"], "events", counts))
    runs = {line.data["run"] for line in turn if line.kind == "leg"}
    found += _journalled(folder, runs, found)
    return sorted(found, key=lambda m: m["time"])


def _last(found: list[dict[str, Any]], began: float) -> float:
    return float(max([began, *(m["time"] for m in found)]))


def _moment(time: float, what: str, text: str) -> dict[str, Any]:
    return {"time": time, "what": what, "text": text}


def _reply(data: dict[str, Any]) -> str:
    usage = data["usage"]
    tokens = f"{usage['input']} tokens in ({usage['cache_read']} cached), {usage['output']} out"
    return f"{data['n']}: {data['ms']} ms, {data['error'] or data['reason']}, {tokens}"


def _journalled(folder: Path, runs: set[str], found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Dispatches with handlers, out of the journal, as far as they lie within the turn."""
    if not runs:
        return []
    first, last = min(m["time"] for m in found), _last(found, 0.0)
    made: list[dict[str, Any]] = []
    for path in (folder / "journal.jsonl.1", folder / "journal.jsonl"):
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            continue
        for raw in data.splitlines():
            try:
                line = msgspec.json.decode(raw)
            except msgspec.DecodeError:
                continue  # a line torn by a kill
            if line.get("run") in runs and first - 0.05 <= line["time"] <= last + 0.05:
                made += [_moment(line["time"], "event", text) for text in _heard(line)]
    return made


def _heard(line: dict[str, Any]) -> list[str]:
    name = f"{line['event']} {line.get('ident', '')}".rstrip()
    texts = []
    for heard in line.get("heard", ()):
        if heard.get("hook") and heard.get("skip", {}).get("kind") == SkipKind.OTHER_EVENT:
            continue  # none of the moments that this hook of a program means
        answer = heard.get("answer", {})
        troubles = [
            f"{word}: {heard[key]}" for key, word in (("skipped", "skipped"), ("error", "failed")) if heard.get(key)
        ]
        refused = [f"refused: {why}" for why in heard.get("rejected", ())]
        said = "; ".join([*troubles, *_said(answer), *refused]) or "pass"
        texts.append(
            f"{name} → {heard['owner']} {heard.get('where', '')}: {said} ({heard.get('ms', 0)} ms)".replace(" :", ":")
        )
    return texts


def _said(answer: dict[str, Any]) -> list[str]:
    words = [answer.get("decision", "")] if answer.get("decision") else []
    words += ["halt"] if answer.get("halt") else []
    words += [repr(answer["reason"])] if answer.get("reason") else []
    words += [f"{c['op']} {c['field']}" for c in answer.get("changes", ())]
    words += [key for key in ("inject", "result", "context") if answer.get(key)]
    return words
