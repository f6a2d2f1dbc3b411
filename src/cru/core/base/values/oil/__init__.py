"""What an OIL view consists of, and how it is laid out: as lines with styles, as plain text, as HTML (docs/oil.md)."""

FULL, EMPTY = "█", "░"


def bar(value: float, columns: int) -> str:
    """Return a bar of progress in characters. `value`: how much is done, from 0 to 1."""
    full = round(value * columns)
    return FULL * full + EMPTY * (columns - full)
