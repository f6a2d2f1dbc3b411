#!/usr/bin/env python3
"""Secrets: nothing that looks like a key is written into a file."""

import json
import re
import sys

KEY = re.compile(r"AKIA[0-9A-Z]{16}|-----BEGIN [A-Z ]*PRIVATE KEY-----")
given = json.load(sys.stdin)["tool_input"]
if KEY.search(given.get("content", "") + given.get("new_string", "")):
    print("this looks like a key: read it from the environment", file=sys.stderr)
    sys.exit(2)
