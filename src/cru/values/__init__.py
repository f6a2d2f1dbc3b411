"""The nouns that every room shares. No I/O here, and no room above may be imported.

msgspec loads two modules that nothing here needs and that cost a fifth of the start: typing_extensions (Python >= 3.11 has all of it)
and, through uuid, platform (asked only for the system's name). They are kept out while msgspec loads; anybody who imports them later gets
the real ones (tests/faces/test_start.py counts modules).
"""

import os
import sys
from types import ModuleType


def _load_msgspec() -> None:
    kept_out: dict[str, ModuleType | None] = {"typing_extensions": None}
    if "uuid" not in sys.modules:
        platform = ModuleType("platform")
        platform.__dict__["system"] = lambda: os.uname().sysname
        kept_out["platform"] = platform
    kept_out = {name: module for name, module in kept_out.items() if name not in sys.modules}
    sys.modules.update(kept_out)  # type: ignore[arg-type]
    try:
        import msgspec
        import msgspec._utils  # noqa: F401  (it resolves its imports now)
    finally:
        for name in kept_out:
            del sys.modules[name]


_load_msgspec()
