#!/usr/bin/env python3
"""PostToolUse, Bash: keys in outputs are not for the model."""

import json
import re
import sys

data = json.load(sys.stdin)
response = data["tool_response"]
clean = re.sub(r"sk-\w+", "[key]", response["stdout"])
if clean != response["stdout"]:
    response["stdout"] = clean
    print(json.dumps({"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": response}}))
