"""What was expected of a play and what it showed: a list of what differs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from tests.kit.differential.cases import Expectation

ANYTHING = "…"


class Firing(Struct, frozen=True):
    """One call of `~/record`.

    event: what the hook was told, or `~/record NAME`
    stdin: the JSON that it read; None if it was none
    env: its environment
    """

    event: str
    stdin: Any
    env: dict[str, str]


class Play(Struct, frozen=True):
    """What one case showed.

    home, project: the folders
    firings: in the order of their end
    requests: the texts of each request of the conversation
    exit: of the last run
    shown: both streams of all runs
    """

    home: Path
    project: Path
    firings: list[Firing]
    requests: list[str]
    exit: int
    shown: str


def differences(expect: Expectation, play: Play) -> list[str]:
    """One line for each expectation that does not hold."""
    return [*_firings(expect, play), *_texts(expect, play), *_outcome(expect, play)]


def _firings(expect: Expectation, play: Play) -> Iterator[str]:
    heard = [firing.event for firing in play.firings]
    if expect.heard is not None and heard != expect.heard:
        yield f"heard: {heard} and not {expect.heard}"
    for event, count in expect.count.items():
        if heard.count(event) != count:
            yield f"{event} was heard {heard.count(event)} × and not {count} ×"
    for part, fields in (("stdin", expect.stdin), ("env", expect.env)):
        for name, expected in fields.items():
            firing = _nth(play, name)
            if firing is None:
                yield f"{part}: no hook heard {name}, only {heard}"
                continue
            for key, pattern in expected.items():
                value = firing.env.get(key) if part == "env" else field(firing.stdin, key)
                if not fits(_placed(pattern, play), value):
                    yield f"{part} of {name}: {key} is {value!r} and not {pattern!r}"


def _nth(play: Play, name: str) -> Firing | None:
    event, _, number = name.partition("#")
    firings = [firing for firing in play.firings if firing.event == event]
    index = int(number or 1) - 1
    return firings[index] if index < len(firings) else None


def field(value: Any, path: str) -> Any:
    """What stands at a path of names and indices; None if nothing does."""
    for name in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(name)
        elif isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value


def fits(pattern: Any, value: Any) -> bool:
    """A text as a pattern (`…` alone is anything but nothing), an object by the keys that the pattern has, anything else by equality."""
    if pattern == ANYTHING:
        return value not in (None, "")
    if isinstance(pattern, str):
        return isinstance(value, str) and _whole(pattern, value)
    if isinstance(pattern, dict):
        return isinstance(value, dict) and all(fits(item, value.get(key)) for key, item in pattern.items())
    if isinstance(pattern, list):
        return isinstance(value, list) and len(value) == len(pattern) and all(map(fits, pattern, value))
    return bool(pattern == value) and isinstance(pattern, bool) == isinstance(value, bool)


def _expression(pattern: str) -> str:
    return ".*".join(map(re.escape, pattern.split(ANYTHING)))


def _whole(pattern: str, text: str) -> bool:
    return re.fullmatch(_expression(pattern), text, re.DOTALL) is not None


def _has(pattern: str, text: str) -> bool:
    return re.search(_expression(pattern), text, re.DOTALL) is not None


def _placed(pattern: Any, play: Play) -> Any:
    """The pattern with the folders of this play."""
    if isinstance(pattern, str):
        return pattern.replace("$PROJECT", str(play.project)).replace("$HOME", str(play.home))
    if isinstance(pattern, dict):
        return {key: _placed(value, play) for key, value in pattern.items()}
    return [_placed(value, play) for value in pattern] if isinstance(pattern, list) else pattern


def _texts(expect: Expectation, play: Play) -> Iterator[str]:
    last = play.requests[-1] if play.requests else ""
    for what, text, patterns, there in (
        ("the last request", last, expect.request, True),
        ("the last request", last, expect.not_request, False),
        ("the output", play.shown, expect.shown, True),
        ("the output", play.shown, expect.not_shown, False),
    ):
        for pattern in patterns:
            if _has(_placed(pattern, play), text) is not there:
                yield f"{what} has{' no' if there else ''} {pattern!r}: {text[-1500:]!r}"


def _outcome(expect: Expectation, play: Play) -> Iterator[str]:
    if expect.requests is not None and len(play.requests) != expect.requests:
        yield f"{len(play.requests)} requests and not {expect.requests}"
    if expect.exit is not None and play.exit != expect.exit:
        yield f"exit status {play.exit} and not {expect.exit}: {play.shown[-500:]!r}"
    ran = (play.project / "ran").exists()
    if expect.ran is not None and ran is not expect.ran:
        yield f"the call was {'' if ran else 'not '}run"
    for name, pattern in expect.files.items():
        path = play.project / name
        text = path.read_text(errors="replace") if path.exists() else None
        if not fits(_placed(pattern, play), text):
            yield f"{name} has {text!r} and not {pattern!r}"
