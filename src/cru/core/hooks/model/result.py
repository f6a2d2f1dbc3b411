"""What came of a run of a hook: as a process, and as its dialect understands it."""

from __future__ import annotations

from msgspec import Struct

from cru.core.events.answers import PASS, Answer


class HookRun(Struct, frozen=True):
    """What came of a run of a command.

    exit: its exit status, negative for a signal; None: it has none (not started, timed out, cancelled)
    stdout, stderr: decoded, invalid bytes replaced, without a byte order mark
    ms: wall-clock milliseconds
    timed_out: it was ended at its time limit
    truncated: it printed more than is kept
    error: why it could not be run, or not to its end
    note: a warning about the run, for the person (a variable left out, no jq)
    left_out: variables that it could not be given
    withheld: not run because it is no longer what a person has trusted
    """

    exit: int | None
    stdout: str = ""
    stderr: str = ""
    ms: float = 0.0
    timed_out: bool = False
    truncated: bool = False
    error: str = ""
    note: str = ""
    left_out: tuple[str, ...] = ()
    withheld: bool = False


class HookResult(Struct, frozen=True):
    """What a run of a hook means.

    answer: what is composed with the answers of other hooks
    to_user: a text for the person
    warning: what is wrong with the output, although it counts
    failed: why the hook counts as failed: `on_error` applies, and without one it decides nothing
    deferred: context that has no place on its own event: it waits for the next request of the conversation
    """

    answer: Answer = PASS
    to_user: str = ""
    warning: str = ""
    failed: str = ""
    deferred: tuple[str, ...] = ()
