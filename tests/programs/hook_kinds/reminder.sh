#!/bin/sh
# Rules again: with every prompt, so that they are not forgotten.
cat "$CLAUDE_PROJECT_DIR/RULES.md"
