#!/usr/bin/env python3
"""Stop: reads the transcript as many scripts do, and writes the last words down."""

import json
import sys

data = json.load(sys.stdin)
last, tools, asked = "", [], ""
with open(data["transcript_path"]) as transcript:
    for line in transcript:
        entry = json.loads(line)
        content = entry["message"]["content"]
        if entry["type"] == "user" and isinstance(content, str):
            asked = content
        if entry["type"] == "assistant":
            for block in content:
                if block["type"] == "text":
                    last = block["text"]
                elif block["type"] == "tool_use":
                    tools.append(block["name"])
with open("last_words.json", "w") as out:
    json.dump({"asked": asked, "last": last, "tools": tools}, out)
