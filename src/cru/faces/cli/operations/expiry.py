"""`--destroy-at` and `--destroy-after-inactive`: contexts that destroy themselves (cru.core.conversations.expiry)."""

from __future__ import annotations

import re

from cru.core.conversations.entries import format_time, now
from cru.core.conversations.expiry import UNITS, format_duration, set_mark
from cru.faces.cli.flags import UsageProblem
from cru.faces.cli.operations.flag_run import FlagRun

NEVER = ("never", "0")


def destroy_at(run: FlagRun, value: str) -> None:
    moment = 0 if value in NEVER else _parse_time(value)
    _mark(run, at=moment)
    run.say(
        f"{run.name} destroys itself on {format_time(moment)}"
        if moment
        else f"{run.name} does not destroy itself at a time"
    )


def destroy_after_inactive(run: FlagRun, value: str) -> None:
    seconds = 0 if value in NEVER else _parse_duration(value)
    _mark(run, after=seconds)
    what = f"{run.name} destroys itself after {format_duration(seconds)} without use"
    run.say(what if seconds else f"{run.name} does not destroy itself for lack of use")


def _mark(run: FlagRun, **mark: int) -> None:
    set_mark(run.home.path, run.store().folder, **mark)
    run.home.prepare()  # it knows of the mark now


def _parse_time(value: str) -> int:
    """Unix seconds, or a date with or without a time (ISO 8601; local, unless it names a zone)."""
    from datetime import datetime

    try:
        seconds = int(value) if re.fullmatch(r"\d+", value) else int(datetime.fromisoformat(value).timestamp())
        datetime.fromtimestamp(seconds)
    except (ValueError, OverflowError, OSError) as error:
        hint = "Unix seconds, or 2030-01-31, 2030-01-31T12:00, 2030-01-31T12:00:00Z; never takes it back"
        raise UsageProblem(f"--destroy-at: {value!r} is not a point in time", hint) from error
    if seconds <= now():
        hint = f"cru -D destroys a context at once; {NEVER[0]} takes it back"
        raise UsageProblem(f"--destroy-at: {format_time(seconds)} is past", hint)
    return seconds


def _parse_duration(value: str) -> int:
    """Seconds, or a number with a unit."""
    match = re.fullmatch(r"(\d{1,12})([smhdw]?)", value)
    if match is None or int(match[1]) == 0:
        raise UsageProblem(
            f"--destroy-after-inactive: {value!r} is not a length of time",
            "seconds, or 45m, 12h, 30d, 2w; never takes it back",
        )
    return int(match[1]) * UNITS[match[2] or "s"]
