"""Messages in, deltas out."""
