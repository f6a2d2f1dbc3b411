#!/usr/bin/env python3
"""Cost: adds up the tokens of a session from its transcript at the end of each turn."""

import json
import pathlib
import sys

event = json.load(sys.stdin)
replies = {}
for line in pathlib.Path(event["transcript_path"]).read_text().splitlines():
    message = json.loads(line).get("message", {})
    if message.get("usage"):
        replies[message["id"]] = message["usage"]  # each line of a reply has it
spent = {name: sum(usage[f"{name}_tokens"] for usage in replies.values()) for name in ("input", "output")}
(pathlib.Path.home() / "cost.json").write_text(json.dumps({event["session_id"]: spent}))
