"""The examples in the docstrings of the namespace, and a reader of their expressions that calls the names as Python does."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any

from msgspec import Struct

from cru.core.api.arguments import lua_type
from cru.core.api.host import Values
from cru.core.api.names import NAMES
from cru.core.command_table import load_target

Value = Callable[[dict[str, Any]], Awaitable[Any]]
TOKEN = re.compile(r"""\s*("(?:\\.|[^"])*"|'(?:\\.|[^'])*'|\d+(?:\.\d+)?|\w+|-->|[=~<>]=|[-+*/#(){}\[\].,:=<>])""")


class Example(Struct, frozen=True):
    """`expression` gives `value`, both in Lua."""

    expression: str
    value: str


def docs(target: str) -> tuple[str, str]:
    """(what the docstring of "module:function" says, its example)."""
    text = load_target(target).__doc__ or ""
    said, _, example = text.partition("Example: ")
    return " ".join(said.split()), example.strip()


def of(target: str) -> Example:
    """The example of "module:function". Raises AssertionError if there is none."""
    text = docs(target)[1]
    expression, arrow, value = text.partition(" --> ")
    assert arrow and "\n" not in text, f"{target} has no example on one line"
    return Example(expression, value)


def example(name: str) -> Example:
    """The example of a name; where it is another word for a function, with this word."""
    found = of(NAMES[name])
    used = re.compile(rf"cru\.{re.escape(name)}(?=[(,)])")
    expression = found.expression
    for other in (n for n in NAMES if NAMES[n] == NAMES[name]):
        if not used.search(expression):
            expression = re.sub(rf"cru\.{re.escape(other)}(?=[(,)])", f"cru.{name}", expression)
    assert used.search(expression), f"the example of cru.{name} does not use it: {expression}"
    return Example(expression, found.value)


async def value(text: str, names: dict[str, Any]) -> Any:
    """What an expression of Lua gives when Python runs it over these names."""
    return await Reader(text).expression()(names)


class Reader:
    """As much of Lua as the examples use."""

    def __init__(self, text: str) -> None:
        self.tokens = TOKEN.findall(text)
        assert "".join(self.tokens) == re.sub(r"\s", "", text) or '"' in text or "'" in text, text

    def take(self, *wanted: str) -> str:
        if wanted and (not self.tokens or self.tokens[0] not in wanted):
            return ""
        return str(self.tokens.pop(0))

    def expression(self) -> Value:
        left = self.operand()
        operator = self.take("==", "~=", ">", ">=", "<=", "<")
        if not operator:
            return left
        right = self.operand()

        async def compared(names: dict[str, Any]) -> Any:
            a, b = first(await left(names)), first(await right(names))
            return {"==": lambda: a == b, "~=": lambda: a != b, ">": lambda: a > b, ">=": lambda: a >= b,
                    "<=": lambda: a <= b, "<": lambda: a < b}[operator]()  # fmt: skip

        return compared

    def operand(self) -> Value:
        if self.take("#"):
            inner = self.operand()

            async def length(names: dict[str, Any]) -> int:
                return len(first(await inner(names)))

            return length
        return self.suffixed(self.primary())

    def primary(self) -> Value:
        token = self.take()
        if token == "{":
            return self.table()
        if token == "function":
            return self.function()
        if token == "(":
            inner = self.expression()
            self.take(")")
            return inner
        if token[0] in "\"'":
            return constant(token[1:-1].encode().decode("unicode_escape"))
        if token[0].isdigit():
            return constant(float(token) if "." in token else int(token))
        if token in ("nil", "true", "false"):
            return constant({"nil": None, "true": True, "false": False}[token])

        async def variable(names: dict[str, Any]) -> Any:
            return names[token]

        return variable

    def suffixed(self, base: Value) -> Value:
        while True:
            if self.take("("):
                base = called(base, self.arguments())
            elif self.take("["):
                base = read(base, self.expression())
                self.take("]")
            elif self.take(".") or self.take(":"):
                base = read(base, constant(self.take()))
            else:
                return base

    def arguments(self) -> list[Value]:
        found: list[Value] = []
        while not self.take(")"):
            found.append(self.expression())
            self.take(",")
        return found

    def table(self) -> Value:
        items: list[Value] = []
        keyed: dict[str, Value] = {}
        while not self.take("}"):
            if len(self.tokens) > 1 and self.tokens[1] == "=":
                key = self.take()
                self.take("=")
                keyed[key] = self.expression()
            else:
                items.append(self.expression())
            self.take(",")

        async def made(names: dict[str, Any]) -> Any:
            if items:
                return [await item(names) for item in items]
            return {key: await item(names) for key, item in keyed.items()}

        return made

    def function(self) -> Value:
        self.take("(")
        parameters = []
        while not self.take(")"):
            parameters.append(self.take())
            self.take(",")
        body = constant(None) if self.tokens[0] == "end" else self.statement()
        self.take("end")

        async def closure(names: dict[str, Any]) -> Any:
            return lambda *args: body({**names, **dict(zip(parameters, args, strict=False))})

        return closure

    def statement(self) -> Value:
        if self.take("return"):
            return self.expression()
        target = self.expression()
        if not self.take("="):
            return target
        assigned, path = self.expression(), target

        async def assign(names: dict[str, Any]) -> None:
            owner, key = path.target  # type: ignore[attr-defined]
            setattr(await owner(names), await key(names), await assigned(names))

        return assign


def constant(found: Any) -> Value:
    async def given(_: dict[str, Any]) -> Any:
        return found

    return given


def called(function: Value, arguments: list[Value]) -> Value:
    async def call(names: dict[str, Any]) -> Any:
        result = (await function(names))(*[first(await one(names)) for one in arguments])
        return await result if isawaitable(result) else result

    return call


def read(owner: Value, key: Value) -> Value:
    """A name of the namespace, a method or a field of an object, or what a table holds; lists count from 0."""

    async def found(names: dict[str, Any]) -> Any:
        target, name = first(await owner(names)), await key(names)
        if isinstance(target, dict):
            return target.get(name)
        if isinstance(name, int):
            return target[name - 1]
        return getattr(target, f"{name}_" if name == "global" else name)

    found.target = (owner, key)  # type: ignore[attr-defined]
    return found


def first(found: Any) -> Any:
    return found[0] if isinstance(found, Values) else found


async def pcall(function: Callable[..., Any], *args: Any) -> bool:
    try:
        result = function(*args)
        if isawaitable(result):
            await result
    except Exception:  # noqa: BLE001  pcall catches whatever it is
        return False
    return True


def error(message: str) -> None:
    raise AssertionError(message)


LUA: dict[str, Any] = {
    "pcall": pcall,
    "error": error,
    "type": lua_type,
    "next": lambda found: next(iter(found), None),
}
