"""Tell from the log which calls did not run, and why."""

from __future__ import annotations

from collections.abc import Iterable

from cru.core.base.values.messages import TOOL_RESULT, Entry
from cru.core.events.payloads import FailureKind

MAY_HAVE_RUN = (FailureKind.FAILED, FailureKind.TIMEOUT, FailureKind.INTERRUPTED)
NEVER_RAN = {kind.value for kind in FailureKind if kind not in MAY_HAVE_RUN}
UNANSWERED = "Nobody answered in time: "
"""How the result of a call begins whose question timed out; a command that timed out has the same kind of failure."""


def results_by_call(entries: Iterable[Entry]) -> dict[str, Entry]:
    """Map the id of each call to its newest result."""
    return {entry.tool_call_id: entry for entry in entries if entry.entry_type == TOOL_RESULT}


def why_not_run(result: Entry | None) -> str:
    """Return the first line of the reason, "" if the call ran, may have run, or has no result."""
    if result is None:
        return ""
    which = result.metadata.get("which", "")
    is_unanswered = which == FailureKind.TIMEOUT.value and result.content.startswith(UNANSWERED)
    if which not in NEVER_RAN and not is_unanswered:
        return ""
    return result.content.strip().partition("\n")[0] or str(which)
