"""cru: a command-line agent whose every step is an event that people can program.

This package is the namespace for plugins in Python: `from cru import on, fs, tools` gives the same names as in Lua (docs/namespace.md), and
the errors that they raise. The program itself is in `core`, `features` and `faces`.
"""

from __future__ import annotations

import sys

__version__ = "0.1.0"

ROOMS = frozenset({"core", "features", "faces"})
ERRORS = ("NamespaceError", "NoSession", "BadArgument", "NotAvailable")
"""What names of the namespace raise; the first is the base of the others."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any
else:
    ModuleType = type(sys)


def __getattr__(name: str) -> Any:
    """A name of the namespace, loaded when it is first asked for."""
    if name in ROOMS or name.startswith("_"):  # the import system asks before it looks for a module
        raise AttributeError(f"module 'cru' has no attribute {name!r}")
    if name in ERRORS:
        from cru.core.api import host

        return getattr(host, name)
    from cru.core.api.python import NAMESPACE

    return getattr(NAMESPACE, name)


class NamespacePackage(ModuleType):
    """A test of a plugin may put something at a name of the namespace, for all that ask for it; what is imported is a module."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name.startswith("_") or isinstance(value, ModuleType)):
            from cru.core.api.python import put_stand_in

            if put_stand_in(name, value):
                return
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        from cru.core.api.python import drop_stand_in

        if not drop_stand_in(name):
            super().__delattr__(name)


sys.modules[__name__].__class__ = NamespacePackage
