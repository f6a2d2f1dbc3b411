#!/bin/bash
# SessionStart: what later commands find in their environment, and what the model is told first.
if [ -n "$CLAUDE_ENV_FILE" ]; then
  BEFORE=$(export -p | sort)
  export NODE_ENV="production like"
  comm -13 <(echo "$BEFORE") <(export -p | sort) >> "$CLAUDE_ENV_FILE"
  echo 'export PATH="$PATH:./node_modules/.bin"' >> "$CLAUDE_ENV_FILE"
fi
echo "The project is in $CLAUDE_PROJECT_DIR"
