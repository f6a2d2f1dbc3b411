#!/usr/bin/env python3
"""Compiler: what does not compile is told at once."""

import json
import sys

path = json.load(sys.stdin)["tool_input"]["file_path"]
if path.endswith(".py"):
    try:
        compile(open(path).read(), path, "exec")
    except SyntaxError as error:
        print(json.dumps({"decision": "block", "reason": f"line {error.lineno}: {error.msg}"}))
