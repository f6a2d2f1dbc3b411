#!/usr/bin/env python3
"""Tests first: code is written once there is a test for it."""

import json
import pathlib
import sys

event = json.load(sys.stdin)
path = pathlib.Path(event["tool_input"]["file_path"])
test = pathlib.Path(event["cwd"], "tests", f"test_{path.name}")
if path.parent.name == "src" and not test.exists():
    print(f"write tests/{test.name} first", file=sys.stderr)
    sys.exit(2)
