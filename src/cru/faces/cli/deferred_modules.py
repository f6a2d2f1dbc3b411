"""Modules that asyncio and msgspec import and that most runs never use: the code of each runs when one of its names is first used.

asyncio and msgspec read a few names of some of them while they are imported themselves; `KNOWN` has the values of these names, so that
reading them does not run the module. Every value is the one that the module itself would give (tests/faces/test_deferred_modules.py).

`importlib.util.LazyLoader` would run a module at its second `import` already, and is not safe with threads in Python 3.11.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import ModuleType

TYPE_CHECKING = False  # see flags.py
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from importlib.abc import Loader
    from types import FrameType
    from typing import Any
else:
    Loader = object


class DeferredName:
    """A function or another object of a deferred module, which loads that module when it is used."""

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._load()(*args, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._load(), name)

    def _load(self) -> Any:
        module = sys.modules[self._module]
        if isinstance(module, DeferredModule):
            module.run()
        return vars(module)[self._name]


class DeferredLogger(DeferredName):
    """asyncio's logger. Nobody can have asked for debug messages in a run that has not loaded `logging`."""

    def debug(self, *args: Any, **options: Any) -> None:
        if not isinstance(sys.modules.get("logging"), DeferredModule):
            self._load().debug(*args, **options)


def _extract_stack(f: FrameType | None = None, limit: int | None = None) -> Any:
    """Do what `traceback.extract_stack` does; asyncio calls it in debug mode only."""
    return DeferredName("traceback", "extract_stack")(f or sys._getframe(1), limit)


def _datetime_names() -> Mapping[str, object]:
    """Return the classes written in C: datetime.py of Python 3.11 first builds its own, only to replace them by these."""
    import _datetime  # type: ignore[import-not-found]  # typeshed has none

    return {name: value for name, value in vars(_datetime).items() if not name.startswith("__")}


def _toml_names() -> Mapping[str, object]:
    """Return the expressions for numbers and dates, which take longer to compile than most settings to read."""
    names = ("RE_DATETIME", "RE_LOCALTIME", "RE_NUMBER", "match_to_datetime", "match_to_localtime", "match_to_number")
    return {name: DeferredName("tomllib._re", name) for name in names}


KNOWN: Mapping[str, Callable[[], Mapping[str, object]]] = {
    "asyncio.log": lambda: {"logger": DeferredLogger("asyncio.log", "logger")},
    "concurrent.futures": lambda: {
        name: name for name in ("FIRST_COMPLETED", "FIRST_EXCEPTION", "ALL_COMPLETED")
    },
    "datetime": _datetime_names,
    "logging": lambda: {"DEBUG": 10},
    "platform": lambda: {"system": lambda: os.uname().sysname} if sys.platform == "linux" else {},
    "string": lambda: {
        "ascii_letters": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", "digits": "0123456789",
        "hexdigits": "0123456789abcdefABCDEF",
    },
    "tomllib._re": _toml_names,
    "traceback": lambda: {"extract_stack": _extract_stack},
}  # fmt: skip
"""The names that are read at import time, by module."""

DEFERRED = frozenset({
    *KNOWN, "asyncio.sslproto", "inspect", "ipaddress", "linecache", "locale", "msgspec.inspect", "msgspec.toml", "msgspec.yaml", "ntpath",
    "ssl", "textwrap",
})  # fmt: skip

UNCOMPILED = frozenset({"msgspec._utils", "tomllib._parser"})
"""Modules that build forward references while they are imported."""
UNCOMPILED_LOCK = RLock()
"""Held while one of them is loaded: two threads that replace the same name would take it from each other."""


class DeferredModule(ModuleType):
    """One of them, as long as its code has not run. What the import system sets (`__spec__`, …) is there from the start."""

    def __getattr__(self, name: str) -> object:
        if name != "__path__":  # `from … import` asks every module for it; a package has it from the start
            self.run()
        return ModuleType.__getattribute__(self, name)

    def run(self) -> None:
        """Run the module's code."""
        loader = self.__spec__ and self.__spec__.loader
        if isinstance(loader, DeferringLoader):
            loader.run(self)


class WrappedLoader(Loader):
    """Changes when or how the real loader of a module runs it."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def _restore(self, module: ModuleType) -> None:
        """Give the module its real loader."""
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader


class DeferringLoader(WrappedLoader):
    """Runs a module on first use."""

    def __init__(self, loader: Loader) -> None:
        super().__init__(loader)
        self._lock = RLock()
        self._is_running = False

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ in KNOWN:
            vars(module).update(KNOWN[module.__name__]())
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
            self._restore(module)
            module.__class__ = ModuleType


class UncompiledLoader(WrappedLoader):
    """Loads a module whose forward references remain text. `compile` prepares all classes of syntax trees at its first call, which costs
    as much as a dozen modules, and a run calls it for nothing else. `eval` takes text as well, so the references can still be resolved."""

    def exec_module(self, module: ModuleType) -> None:
        import typing

        with UNCOMPILED_LOCK:
            vars(typing)["compile"] = lambda source, *_: source
            try:
                self._loader.exec_module(module)
            finally:
                del vars(typing)["compile"]
        self._restore(module)


class DeferringFinder:
    """Finds those modules as the import system would."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in DEFERRED and name not in UNCOMPILED:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = (DeferringLoader if name in DEFERRED else UncompiledLoader)(spec.loader)
        return spec


def defer_modules() -> None:
    """From now on their code runs on first use."""
    if DeferringFinder not in sys.meta_path:
        sys.meta_path.insert(0, DeferringFinder)
