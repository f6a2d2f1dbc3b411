#!/bin/sh
# Whoever reads a module should know its test; where there is none, the name is dropped.
name=$(basename "$CRUSH_TOOL_INPUT_FILE_PATH" .py)
printf '{"context_files": ["tests/test_%s.py", "CONTRIBUTING.md", "../elsewhere.md"]}\n' "$name"
