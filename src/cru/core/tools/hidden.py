"""Files that `glob` and `grep` do not show, since reading them is forbidden or needs a question: how many there are."""

from __future__ import annotations

import os

from cru.core.guard.rules.hidden_files import HiddenFiles, HiddenReason
from cru.core.tools.protocol import ToolContext

_NOTES = {
    HiddenReason.DENIED: "left out: rules forbid to read them",
    HiddenReason.UNASKED: "not shown: reading them needs a question; to ask it, give the file or its folder as the path",
}


def find_hidden(running: ToolContext, tool: str, path: str) -> HiddenFiles | None:
    """What a call of this tool on this path, as the model gave it, must not show; None if that is nothing."""
    hidden_files = running.services.rules.hidden_files
    return hidden_files(tool, path) if hidden_files is not None else None


class HiddenCount:
    """What was met and not shown. It is counted whether or not it is what was searched for, since that says what stands in it.

    hidden: what must not be shown, None if that is nothing
    is_whole: all of it was met
    """

    def __init__(self, hidden: HiddenFiles | None) -> None:
        self.hidden = hidden
        self.is_whole = True
        self._reasons: dict[str, HiddenReason | None] = {}

    def why(self, path: str) -> HiddenReason | None:
        """Why this file must not be shown, judged where it is and where it leads now; None if it may be.

        path: absolute, no links but perhaps its last name
        """
        if self.hidden is None:
            return None
        if path not in self._reasons:
            self._reasons[path] = self.hidden.why(path) or self._why_target(self.hidden, path)
        return self._reasons[path]

    def notes(self) -> list[str]:
        """A line for each reason that says how many there are."""
        counted = list(self._reasons.values())
        least = "" if self.is_whole else "at least "
        return [
            f"[{least}{count:,} {'file' if count == 1 else 'files'} {text}]"
            for reason, text in _NOTES.items()
            if (count := counted.count(reason))
        ]

    @staticmethod
    def _why_target(hidden: HiddenFiles, path: str) -> HiddenReason | None:
        return hidden.why(os.path.realpath(path)) if os.path.islink(path) else None
