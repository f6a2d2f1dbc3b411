#!/usr/bin/env python3
"""The real command, killed (SIGKILL, by itself) at one moment of a compaction.

usage: cru_killed.py MOMENT ARG…     (MOMENT: a row of MOMENTS)
"""

import os
import signal
import sys
from typing import Any

from cru.core.conversations import rotation, store
from cru.faces.cli.entry import run_and_exit


def die(*_args: Any, **_named: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def torn(path: Any, data: bytes, **_named: Any) -> None:
    """Half of the lines reach the archive."""
    with open(path, "ab") as file:
        file.write(data[: len(data) // 2])
    die()


MOMENTS = {
    "before the transcript": (store.FileContext, "transcript", die),
    "before the anchor": (store.FileContext, "anchor", die),
    "before the archive": (rotation, "append_lines", die),
    "in the archive": (rotation, "append_lines", torn),
    "before the log is replaced": (rotation, "replace_file", die),
}


if __name__ == "__main__":
    setattr(*MOMENTS[sys.argv[1]])
    run_and_exit(sys.argv[2:])
