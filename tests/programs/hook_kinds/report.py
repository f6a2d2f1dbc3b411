#!/usr/bin/env python3
"""Reports: what a session was about, when it ends."""

import json
import pathlib
import sys

event = json.load(sys.stdin)
lines = [json.loads(line) for line in pathlib.Path(event["transcript_path"]).read_text().splitlines()]
kinds = [line["type"] for line in lines if "type" in line]
report = {"reason": event["reason"], "asked": kinds.count("user"), "answered": kinds.count("assistant")}
(pathlib.Path.home() / "report.json").write_text(json.dumps(report))
