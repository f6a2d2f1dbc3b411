"""The sandbox in what is shown of a session that is not begun."""

from __future__ import annotations

from cru.core.base.values.errors import CruError
from cru.core.turn.parts import Parts
from cru.faces.cli.console import complain
from cru.faces.cli.event_loop import run_interruptible


def open_sandbox(parts: Parts) -> None:
    """Find it as a run would, if it is wanted; why it does not work is told."""
    opening = parts.services.open_sandbox
    if opening is None:
        return
    try:
        run_interruptible(opening(parts))
    except CruError as error:
        complain(f"{error.message} ({error.hint})" if error.hint else error.message)
