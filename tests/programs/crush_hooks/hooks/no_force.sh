#!/usr/bin/env bash
# A push with --force is refused, and the model reads what to do instead. Reads only the environment.
if [[ "$CRUSH_TOOL_INPUT_COMMAND" =~ git[[:space:]]+push.*(--force|-f)([[:space:]]|$) ]]; then
  echo "no force pushes; use --force-with-lease on a branch of your own" >&2
  exit 2
fi
