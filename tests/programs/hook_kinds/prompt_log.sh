#!/bin/sh
# Prompts: a person's own log of them.
jq -c '{session: .session_id, prompt}' >> ~/prompts.jsonl
