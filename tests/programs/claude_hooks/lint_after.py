#!/usr/bin/env python3
"""PostToolUse, Write|Edit: what is wrong with a file goes to the model."""

import json
import sys

data = json.load(sys.stdin)
path = data["tool_input"]["file_path"]
if "TODO" in open(path).read():
    print(f"{path} still holds a TODO", file=sys.stderr)
    sys.exit(2)
