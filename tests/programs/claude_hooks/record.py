#!/usr/bin/env python3
"""Any event: writes down what it reads; after a compaction it says what must not be forgotten."""

import json
import os
import sys

data = json.load(sys.stdin)
with open(os.path.join(os.environ["CLAUDE_PROJECT_DIR"], "events.jsonl"), "a") as file:
    file.write(json.dumps(data) + "\n")
if data.get("source") == "compact":
    print("remember the milk")
