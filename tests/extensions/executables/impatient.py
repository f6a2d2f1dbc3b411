#!/usr/bin/env python3
"""The real command, which waits for a schema 0.3 s only."""

import sys

from cru.extensions.executables import schemas
from cru.faces.cli.entry import start

schemas.SECONDS = 0.3
start(sys.argv[1:])
