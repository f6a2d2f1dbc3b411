#!/usr/bin/env python3
"""Formatting: every file that was written ends with one newline and has no blanks at the ends of lines."""

import json
import pathlib
import sys

event = json.load(sys.stdin)
path = pathlib.Path(event["tool_input"]["file_path"])
text = "\n".join(line.rstrip() for line in path.read_text().splitlines()) + "\n"
if text != path.read_text():
    path.write_text(text)
    note = f"{path.name} was formatted; read it again before you change it"
    print(json.dumps({"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": note}}))
