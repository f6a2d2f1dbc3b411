#!/bin/sh
# Git: nothing is pushed from the main branch, and nothing by force.
command=$(jq -r .tool_input.command)
case $command in
  *"push --force"* | *"push -f"*) echo "no force" >&2; exit 2 ;;
  *"git push"*) [ "$(git -C "$CLAUDE_PROJECT_DIR" symbolic-ref --short HEAD)" = main ] && { echo "not from main" >&2; exit 2; } ;;
esac
exit 0
