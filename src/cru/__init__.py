"""cru: a command-line agent whose every step is an event that people can program.

`from cru import on, fs, state` gives the names of the namespace, the same as in Lua. Names that are also rooms of the program, such as
`tools`, come from `cru.core.api.python`.
"""

from __future__ import annotations

import sys

__version__ = "0.1.0"

# The modules in this package: never names of the namespace.
ROOMS = frozenset(
    {
        "app", "bundled", "config", "contexts", "engine", "events", "extensions", "faces", "models", "namespace", "net",
        "permissions", "tools", "values",
    }
)  # fmt: skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any
else:
    ModuleType = type(sys)


def __getattr__(name: str) -> Any:
    """A name of the namespace, loaded when it is first asked for."""
    if name in ROOMS or name.startswith("_"):
        raise AttributeError(f"module 'cru' has no attribute {name!r}")
    from cru.core.api.python import NAMESPACE

    return getattr(NAMESPACE, name)


def _family(name: str) -> property:
    """What the import system binds there, a room that it has loaded, is left aside: an import statement finds it without that."""
    return property(lambda package: __getattr__(name), lambda package, room: None)


class NamespacePackage(ModuleType):
    """`shell`, `vault` and `mcp` are families of the namespace and rooms of the program: as attributes they are families."""

    def __setattr__(self, name: str, value: object) -> None:
        """A test of a plugin may put something at a name of the namespace, for all that ask for it; what is imported is a module."""
        if not (name.startswith("_") or isinstance(value, ModuleType)):
            from cru.core.api.python import put_stand_in

            if put_stand_in(name, value):
                return
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        from cru.core.api.python import drop_stand_in

        if not drop_stand_in(name):
            super().__delattr__(name)

    shell = _family("shell")
    vault = _family("vault")
    mcp = _family("mcp")


sys.modules[__name__].__class__ = NamespacePackage
