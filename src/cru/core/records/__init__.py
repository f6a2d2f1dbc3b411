"""What a session has recorded, read again: requests to the byte, the trace, what was used."""
