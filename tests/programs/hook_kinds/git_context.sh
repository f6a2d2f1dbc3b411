#!/bin/sh
# State: with each prompt, where the repository stands.
cd "$CLAUDE_PROJECT_DIR" && echo "branch $(git symbolic-ref --short HEAD), changed: $(git status --short | tr '\n' ' ')"
