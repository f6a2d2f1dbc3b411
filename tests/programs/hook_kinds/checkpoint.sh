#!/bin/sh
# Checkpoints: the file as it was, before it is changed.
input=$(cat)
file=$(printf %s "$input" | jq -r .tool_input.file_path)
[ -f "$file" ] || exit 0
kept="$HOME/.claude/checkpoints/$(printf %s "$input" | jq -r .session_id)"
mkdir -p "$kept" && cp "$file" "$kept/"
