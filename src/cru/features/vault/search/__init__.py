"""Which notes are about something."""
