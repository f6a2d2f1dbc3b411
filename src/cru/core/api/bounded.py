"""Reading, writing and filtering that nobody can bound beforehand."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from cru.core.api.host import BadArgument

T = TypeVar("T")


def run_bounded(where: str, work: Callable[[], T]) -> T:
    """Do it in a process of its own, whose time and memory are limited. Raises BadArgument."""
    from cru.core.base.process.forked import WorkEnded, WorkFailed, run_in_fork

    try:
        return run_in_fork(work)
    except WorkFailed as error:
        raise BadArgument(error.message, error.hint) from error
    except WorkEnded as error:
        raise BadArgument(f"{where}: {error.message}") from error
