"""`cru vault`: the notes on the command line (docs/vault.md)."""
