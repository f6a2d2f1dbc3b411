#!/usr/bin/env python3
"""Memory: keeps what the person asked to remember, and gives it to the next session."""

import json
import pathlib
import sys

event = json.load(sys.stdin)
notes = pathlib.Path.home() / ".claude" / "memory.md"
if event["hook_event_name"] == "SessionStart" and notes.exists():
    text = "# What you were asked to remember\n" + notes.read_text()
    print(json.dumps({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}}))
elif event["hook_event_name"] == "UserPromptSubmit" and event["prompt"].startswith("remember: "):
    with notes.open("a") as file:
        file.write("- " + event["prompt"].removeprefix("remember: ") + "\n")
    print(json.dumps({"decision": "block", "reason": "remembered"}))
