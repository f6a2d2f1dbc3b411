#!/usr/bin/env python3
"""Handoff: what was asked for is kept before a compaction, and given back after it."""

import json
import pathlib
import sys

event = json.load(sys.stdin)
kept = pathlib.Path.home() / "handoff.md"
if event["hook_event_name"] == "PreCompact":
    lines = map(json.loads, pathlib.Path(event["transcript_path"]).read_text().splitlines())
    asked = [line["message"]["content"] for line in lines if line.get("type") == "user"]
    kept.write_text("\n".join(f"- {text}" for text in asked if isinstance(text, str)))
elif event["source"] == "compact":
    print("You were asked for:\n" + kept.read_text())
