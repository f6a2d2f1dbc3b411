"""The nouns that every room shares. No I/O here, and no room above may be imported.

msgspec asks for typing_extensions although Python >= 3.11 has all it needs; loading it costs 20 ms at every start, so it is
kept out while msgspec resolves its helpers (checked by tests/faces/test_start.py).
"""

import sys

_HIDDEN = "typing_extensions"

if _HIDDEN not in sys.modules:
    sys.modules[_HIDDEN] = None  # type: ignore[assignment]
    try:
        import msgspec
        import msgspec._utils  # noqa: F401  (it resolves its imports now)
    finally:
        del sys.modules[_HIDDEN]
