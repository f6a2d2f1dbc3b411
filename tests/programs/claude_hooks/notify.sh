#!/bin/sh
# Notification: what would be shown on the desktop.
cat >> "$CLAUDE_PROJECT_DIR/notifications.jsonl"
