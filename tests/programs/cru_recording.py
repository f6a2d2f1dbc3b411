#!/usr/bin/env python3
# forkable: the tables of names are read late
"""The real command; the names of `cru` that plugins use are noted in the file $RECORD_NAMES, and $RECORD_WITHOUT fails."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.programs.recording import Recorder, record


def main() -> None:
    sys.modules.pop("cru.core.api.python", None)  # it copies the tables when it is loaded
    record(Recorder(Path(os.environ["RECORD_NAMES"]), os.environ.get("RECORD_WITHOUT", "")))
    from cru.faces.cli.entry import run_and_exit

    run_and_exit(sys.argv[1:])


main()
