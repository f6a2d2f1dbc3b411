"""Search by meaning: notes as vectors of their passages (docs/decisions/vault.md). Needs the extra `semantic`."""
