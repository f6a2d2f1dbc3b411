"""Data in other formats than JSON, and jq over it (docs/oq.md)."""
