#!/bin/sh
# Commits: what a turn has changed is committed at its end.
cd "$CLAUDE_PROJECT_DIR" || exit 1
[ -z "$(git status --porcelain)" ] && exit 0
git add -A && git -c user.name=hook -c user.email=hook@localhost commit -qm "turn: $(jq -r .last_assistant_message | head -c 40)"
