#!/usr/bin/env python3
"""The real command, which waits for a schema 0.3 s only."""

import sys

from cru.core.plugins.executables import schemas
from cru.faces.cli.entry import run_and_exit

schemas.SECONDS = 0.3
run_and_exit(sys.argv[1:])
