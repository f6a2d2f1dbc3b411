"""The index of a vault, made from the notes alone."""
