#!/bin/bash
# Whoever drops a table has lost the thread: the turn ends and a person takes over.
set -euo pipefail
read -r input
case $(jq -r '.tool_input.command' <<<"$input" | tr '[:lower:]' '[:upper:]') in
  *"DROP TABLE"*)
    echo "a person decides about databases" >&2
    exit 49
    ;;
esac
