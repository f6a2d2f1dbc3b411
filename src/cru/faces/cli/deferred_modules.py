"""Modules that asyncio and msgspec import and that most runs never use: the code of each is run when one of its names is first used.

`importlib.util.LazyLoader` would run it at the second `import` already, and is not safe with threads in Python 3.11.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import ModuleType

TYPE_CHECKING = False  # see flags.py
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.abc import Loader
else:
    Loader = object

DEFERRED = frozenset({
    "asyncio.sslproto", "inspect", "ipaddress", "linecache", "locale", "msgspec.inspect", "msgspec.toml", "msgspec.yaml", "ssl", "textwrap",
})  # fmt: skip


class DeferredModule(ModuleType):
    """One of them, as long as its code has not run. What the import system sets (`__spec__`, …) is there from the start."""

    def __getattr__(self, name: str) -> object:
        loader = self.__spec__ and self.__spec__.loader
        if isinstance(loader, DeferringLoader):
            loader.run(self)
        return ModuleType.__getattribute__(self, name)


class DeferringLoader(Loader):
    """Puts off what the real loader of a module does."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._lock = RLock()
        self._is_running = False

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__class__ = DeferredModule

    def run(self, module: ModuleType) -> None:
        """Load the module in place. Another thread waits until it is whole; its own code sees what it has so far."""
        with self._lock:
            if self._is_running or type(module) is ModuleType:
                return
            self._is_running = True
            try:
                self._loader.exec_module(module)
            finally:
                self._is_running = False
            module.__loader__ = self._loader
            if module.__spec__ is not None:
                module.__spec__.loader = self._loader
            module.__class__ = ModuleType


class DeferringFinder:
    """Finds those modules as the import system would."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in DEFERRED:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = DeferringLoader(spec.loader)
        return spec


def defer_modules() -> None:
    """From now on their code runs on first use."""
    if DeferringFinder not in sys.meta_path:
        sys.meta_path.insert(0, DeferringFinder)
