#!/usr/bin/env python3
"""Audit: one line for every call, with its tool, its subject and how long it took."""

import json
import pathlib
import sys

event = json.load(sys.stdin)
given = event["tool_input"]
line = {
    "session": event["session_id"],
    "call": event["tool_use_id"],
    "tool": event["tool_name"],
    "subject": given.get("command") or given.get("file_path"),
    "ms": event["duration_ms"],
    "failed": "error" in event,
}
with (pathlib.Path.home() / "audit.jsonl").open("a") as file:
    file.write(json.dumps(line) + "\n")
