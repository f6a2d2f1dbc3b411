"""What every session is made of. No feature and no face is imported here."""
