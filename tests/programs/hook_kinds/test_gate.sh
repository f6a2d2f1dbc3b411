#!/bin/sh
# Tests: the agent may not stop while they fail.
[ "$(jq -r .stop_hook_active)" = true ] && exit 0
out=$(cd "$CLAUDE_PROJECT_DIR" && sh check.sh 2>&1) && exit 0
printf 'the tests fail:\n%s\n' "$out" >&2
exit 2
