#!/usr/bin/env python3
"""The real command with the toy dialect in it: everything but the list of extensions is as installed.

usage: cru_with_toy.py RULES ARG…     (RULES is a file in the toy dialect's language)
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.programs.toy_dialect import Toy

from cru import app
from cru.faces.cli.start import start

app.INSTALLED.append(Toy("toy", Path(sys.argv[1]).read_text()))
start(sys.argv[2:])
