"""The command `chibi`, as plugins call it: `cru`, which also knows two flags of chibi 0.3."""

from __future__ import annotations

from cru.faces.cli import flag_names
from cru.faces.cli.main import main

OLD = {"-S": "-C", "-e": "-y"}

if __name__ == "__main__":
    flag_names.SYNONYMS.update(OLD)
    main()
