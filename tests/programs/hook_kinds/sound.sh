#!/bin/sh
# Sound: one when the agent is done; the player is whatever is there.
player=$(command -v paplay || command -v aplay || command -v ring || true)
[ -n "$player" ] && "$player" done.wav
exit 0
