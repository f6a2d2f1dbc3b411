#!/usr/bin/env python3
"""Commit messages: `kind: what`, at most 60 characters."""

import json
import re
import shlex
import sys

words = shlex.split(json.load(sys.stdin)["tool_input"]["command"])
if words[:2] == ["git", "commit"] and "-m" in words:
    message = words[words.index("-m") + 1]
    if len(message) > 60 or not re.match(r"[a-z]+: \S", message):
        reason = "a commit message is `kind: what`, at most 60 characters"
        print(json.dumps({"decision": "block", "reason": reason}))
