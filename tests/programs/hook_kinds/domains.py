#!/usr/bin/env python3
"""Domains: pages are read from these only."""

import json
import sys
from urllib.parse import urlsplit

host = urlsplit(json.load(sys.stdin)["tool_input"]["url"]).hostname or ""
if host != "docs.example.org":
    decision = {"permissionDecision": "deny", "permissionDecisionReason": f"{host} is not on the list"}
    print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}}))
