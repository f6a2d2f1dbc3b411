"""Search by meaning: notes as vectors of their passages (docs/decisions/0057-search-by-meaning.md). Needs the extra `semantic`."""
