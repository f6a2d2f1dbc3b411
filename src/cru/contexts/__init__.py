"""Conversations on disk: log, lock, inbox, home folder."""
