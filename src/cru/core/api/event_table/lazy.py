"""Big fields of events, made only when a handler reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from cru.core.base.config.closest import did_you_mean

BIG_TEXT = 64 << 10
BIG_LIST = 16
"""Beyond this length a field is sent only when it is read."""


class Lazy:
    """A value that is made when it is first read.

    make: makes it
    """

    __slots__ = ("_source", "_value", "make")

    def __init__(self, make: Callable[[], Any], source: object = None) -> None:
        self.make = make
        self._source = source
        self._value: object = None

    @property
    def small(self) -> object:
        """What it is made of, if that may as well be sent to another language at once."""
        return None if is_big(self._source) else self._source

    def get(self) -> object:
        """The value; made once. `make()` makes another."""
        if self._value is None:
            self._value = self.make()
        return self._value


def is_big(value: object) -> bool:
    """Whether a list is long, a text, or a text in a table is; cheap, so only the first level of a table is looked at."""
    if isinstance(value, (list, tuple)):
        return len(value) > BIG_LIST or any(len(getattr(item, "content", "")) > BIG_TEXT for item in value)
    if isinstance(value, dict):
        return len(value) > BIG_LIST or any([type(item) is str and len(item) > BIG_TEXT for item in value.values()])
    return type(value) is str


class LazyDict(dict[str, object]):
    """A dict whose Lazy values are made when they are read, for handlers in Python. `raw_items` gives them as they are."""

    def __getitem__(self, key: str) -> Any:
        value = dict.__getitem__(self, key)
        if type(value) is Lazy:
            value = self[key] = value.get()
        return value

    def __iter__(self) -> Iterator[str]:  # its being there makes dict(x) and {**x} read through __getitem__
        return super().__iter__()

    def __eq__(self, other: object) -> bool:
        return dict(self.items()) == other

    def __getattr__(self, name: str) -> object:
        """`event.args` is `event["args"]`, as far as dict has no method of that name; to assign and to delete it always is."""
        try:
            return self[name]
        except KeyError:
            raise self._missing(name) from None

    def __setattr__(self, name: str, value: object) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        try:
            del self[name]
        except KeyError:
            raise self._missing(name) from None

    def _missing(self, name: str) -> AttributeError:
        if name.startswith("__"):
            return AttributeError(name)
        hint = did_you_mean(name, [key for key in self if isinstance(key, str)])
        return AttributeError(f"there is no `{name}` here{f'; {hint}' if hint else ''}", name=name, obj=self)

    __hash__ = None

    def get(self, key: str, default: object = None) -> object:
        return self[key] if key in self else default  # noqa: SIM401  that is what this is

    def pop(self, key: str, *default: object) -> object:
        value = super().pop(key, *default)
        return value.get() if isinstance(value, Lazy) else value

    def setdefault(self, key: str, default: object = None) -> object:
        super().setdefault(key, default)
        return self[key]

    def items(self) -> Any:
        self._make()
        return super().items()

    def values(self) -> Any:
        self._make()
        return super().values()

    def copy(self) -> dict[str, Any]:
        return dict(self.items())

    def _make(self) -> None:
        for key in self:
            self[key]


def raw_items(values: Mapping[Any, Any]) -> Iterable[tuple[Any, Any]]:
    """Keys and values as they are kept: what nobody has read is still a Lazy."""
    return dict.items(values) if isinstance(values, LazyDict) else values.items()


def resolve_lazy(value: object) -> object:
    """The value itself."""
    return value.get() if isinstance(value, Lazy) else value
