#!/usr/bin/env python3
"""Secrets are nobody's business. Answers in the shape of Claude Code, which Crush reads too."""

import json
import sys

given = json.load(sys.stdin)
if given["tool_input"]["file_path"].endswith(".env"):
    reason = f"{given['tool_name']} must not touch secrets"
    output = {"hookEventName": given["event"], "permissionDecision": "deny", "permissionDecisionReason": reason}
    print(json.dumps({"hookSpecificOutput": output}))
