#!/usr/bin/env python3
"""Loops: the model hears that the same command has failed before."""

import json
import pathlib
import sys

event = json.load(sys.stdin)
seen = pathlib.Path.home() / "failures.json"
counts = json.loads(seen.read_text()) if seen.exists() else {}
command = event["tool_input"]["command"]
counts[command] = counts.get(command, 0) + 1
seen.write_text(json.dumps(counts))
if counts[command] > 1:
    note = f"this has failed {counts[command]} times: try another way"
    print(json.dumps({"hookSpecificOutput": {"hookEventName": "PostToolUseFailure", "additionalContext": note}}))
