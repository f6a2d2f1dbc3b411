"""The namespace in Python: `from cru import on, state`, or the whole of it as `NAMESPACE`, which `setup(cru)` of a plugin gets.

The same functions as in Lua. An async one is awaited; several return values come as a tuple; nil is None. A name that is a word of
Python gets an underscore: `emitter.global_()`.
"""

from __future__ import annotations

from cru.core.api.host import HOST
from cru.core.api.names import ABSENT, CONSTANTS, INDEXED, NAMES, make_absent
from cru.core.base.config.closest import did_you_mean
from cru.core.command_table import load_target

_TARGETS = {**CONSTANTS, **NAMES}
_FAMILIES = {name.rpartition(".")[0] for name in (*_TARGETS, *ABSENT)} | set(INDEXED)


class Family:
    """A part of the namespace: names are attributes, and `family["key"]` reads the keys that belong to nobody."""

    def __init__(self, path: str) -> None:
        object.__setattr__(self, "_path", path)

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        path, full = str(self), self._member(name)
        if (replaced := _replaced()) and full in replaced:
            return replaced[full]
        if full in _FAMILIES:
            return Family(full)
        if full in _TARGETS:
            return load_target(_TARGETS[full])
        if full in ABSENT:
            return make_absent(full, *ABSENT[full])
        if path in INDEXED:
            return self[name]
        raise AttributeError(_unknown(full), name=name, obj=self)

    def __setattr__(self, name: str, value: object) -> None:
        if not put_stand_in(self._member(name), value):
            self[name] = value

    def __delattr__(self, name: str) -> None:
        if not drop_stand_in(self._member(name)):
            raise AttributeError(f"cru.{self._member(name)} cannot be taken away")

    def __getitem__(self, key: str) -> object:
        return load_target(self._index_functions(key)[0])(key)

    def __setitem__(self, key: str, value: object) -> None:
        assign = self._index_functions(key)[1]
        if not assign:
            raise AttributeError(f"cru.{self}.{key} cannot be assigned")
        load_target(assign)(key, value)

    def __call__(self, *args: object, **named: object) -> object:
        path = str(self)
        if path not in NAMES:
            raise TypeError(f"cru.{path} is no function")
        return load_target(NAMES[path])(*args, **named)

    def __dir__(self) -> list[str]:
        prefix = f"{self}." if str(self) else ""
        return sorted({n[len(prefix) :].partition(".")[0] for n in (*_TARGETS, *INDEXED) if n.startswith(prefix)})

    def __str__(self) -> str:
        path: str = object.__getattribute__(self, "_path")
        return path

    def __repr__(self) -> str:
        return f"<names of cru{'.' if str(self) else ''}{self}>"

    def _member(self, name: str) -> str:
        """The whole name of a member."""
        leaf = name.removesuffix("_")
        return f"{self}.{leaf}" if str(self) else leaf

    def _index_functions(self, key: str) -> tuple[str, str]:
        if str(self) not in INDEXED:
            raise AttributeError(f"cru.{self}.{key} cannot be assigned or looked up by key")
        return INDEXED[str(self)]


NAMESPACE = Family("")


def __getattr__(name: str) -> object:
    return getattr(NAMESPACE, name)


def put_stand_in(name: str, value: object) -> bool:
    """What stands at a whole name from now on, in a test of a plugin; False anywhere else, and for what is no name."""
    replaced = _replaced()
    if replaced is None or not (name in _TARGETS or name in _FAMILIES or name in ABSENT):
        return False
    replaced[name] = value
    return True


def drop_stand_in(name: str) -> bool:
    """Let a name be what it was; False if nothing was put there."""
    replaced = _replaced() or {}
    was_there = name in replaced
    replaced.pop(name, None)
    return was_there


def _replaced() -> dict[str, object] | None:
    here = HOST.get(None)
    return None if here is None else here.plugin.replaced


def _unknown(name: str) -> str:
    hint = did_you_mean(name, sorted({*_TARGETS, *ABSENT, *_FAMILIES}))
    return f"there is no cru.{name}{f'; {hint}' if hint else ''}"
