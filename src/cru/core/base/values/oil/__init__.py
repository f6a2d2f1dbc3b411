"""What an OIL view consists of, and how it is laid out: as lines with styles, as plain text, as HTML (docs/oil.md)."""
