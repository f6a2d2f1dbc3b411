#!/usr/bin/env python3
"""Rules: a file of the project says what is refused, and why."""

import json
import os
import pathlib
import re
import sys

event = json.load(sys.stdin)
rules = json.loads(pathlib.Path(os.environ["CLAUDE_PROJECT_DIR"], ".claude", "rules.json").read_text())
for rule in rules:
    if event["tool_name"] in rule["tools"] and re.search(rule["pattern"], json.dumps(event["tool_input"])):
        print(rule["message"], file=sys.stderr)
        sys.exit(2)
