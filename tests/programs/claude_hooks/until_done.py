#!/usr/bin/env python3
"""Stop: nobody stops before the file is there."""

import json
import os
import sys

data = json.load(sys.stdin)
if not os.path.exists(os.path.join(os.environ["CLAUDE_PROJECT_DIR"], "done.txt")):
    print(json.dumps({"decision": "block", "reason": "done.txt is not there yet. Write it, then stop."}))
