#!/usr/bin/env python3
"""Limits: so many commands a session, and no more."""

import json
import pathlib
import sys

event = json.load(sys.stdin)
counted = pathlib.Path.home() / f"calls-{event['session_id']}"
calls = int(counted.read_text()) + 1 if counted.exists() else 1
counted.write_text(str(calls))
if calls > 2:
    decision = {"permissionDecision": "deny", "permissionDecisionReason": "two commands are enough"}
    print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}}))
