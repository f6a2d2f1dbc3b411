#!/bin/sh
# What was changed already goes behind the result of every edit.
cd "$CRUSH_PROJECT_DIR" || exit 1
jq -n --arg status "$(git status --short 2>/dev/null)" '{version: 1, context: "Changed before this: \($status)"}'
