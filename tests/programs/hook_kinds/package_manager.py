#!/usr/bin/env python3
"""Rewriting: another package manager than the one that the model knows."""

import json
import re
import sys

given = json.load(sys.stdin)["tool_input"]
command = re.sub(r"\bnpm install\b", "echo pnpm add", given["command"])
if command != given["command"]:
    changed = {"permissionDecision": "allow", "updatedInput": {**given, "command": command}}
    print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", **changed}}))
