#!/usr/bin/env python3
"""UserPromptSubmit: secrets are not sent; every prompt has the date beside it."""

import json
import re
import sys

data = json.load(sys.stdin)
if re.search(r"(?i)\b(password|secret)\s*[:=]", data.get("prompt", "")):
    print(json.dumps({"decision": "block", "reason": "Security policy violation: the prompt holds a secret."}))
    sys.exit(0)
print("Today is a Tuesday.")
sys.exit(0)
