"""How notes hang together, and queries over it."""
