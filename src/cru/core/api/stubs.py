"""Types of the namespace for editors: a stub for Python, and definitions for the language server of Lua (LuaLS 3).

Both are made of the table of names and of the signatures and docstrings of the functions behind it.
"""

from __future__ import annotations

import ast
import inspect
import keyword
from collections.abc import Callable, Iterator
from typing import Any

from cru.core.api.names import CONSTANTS, INDEXED, NAMES
from cru.core.command_table import load_target
from cru.core.events.catalog import CATALOG

_KNOWN = frozenset({"Any", "Callable", "None", "bool", "dict", "float", "int", "list", "object", "str", "tuple"})
_LUA = {
    "Any": "any", "Callable": "function", "None": "nil", "bool": "boolean", "dict": "table", "float": "number", "int": "integer",
    "list": "table", "object": "any", "str": "string", "tuple": "table",
}  # fmt: skip
_LUA_WORDS = frozenset((
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in", "local", "nil", "not", "or", "repeat",
    "return", "then", "true", "until", "while",
))  # fmt: skip
_SEVERAL = "Values"
"""What a function is annotated with that returns several results in Lua."""


def python_stub() -> str:
    """Return the text of a `cru.pyi`: every name with its types and its documentation."""
    events = ", ".join(f'"{row.name}"' for row in CATALOG)
    lines = [
        "from collections.abc import Callable",
        "from typing import Any, Literal",
        "",
        "_list = list  # names of the namespace hide the built-in one",
        "__version__: str",
        f"Event = Literal[{events}]",
        "",
    ]
    families = _families()
    for family in sorted(families, key=lambda name: -name.count(".")):
        lines += [f"class {_class_of(family)}:", *_indented(_python_family(family, families[family])), ""]
    for name in _members("", families):
        lines += _python_member(name, families, "")
    return "\n".join(lines).rstrip() + "\n"


def lua_definitions() -> str:
    """Return the text of a `cru.lua` for LuaLS: every name with its types and its documentation. It is never run."""
    lines = ["---@meta cru", "", "---@alias cru.Event", *(f'---| "{row.name}"' for row in CATALOG), ""]
    lines += ["---@class cru", "cru = {}", "crucible = cru", ""]
    families = _families()
    for family in sorted(families, key=lambda name: (name.count("."), name)):
        called = _lua_overload(family) if family in NAMES else ()
        index = ("---@field [string] any",) if family in INDEXED else ()
        lines += [f"---@class cru.{family}", *index, *called, f"{_lua_path(family)} = {{}}", ""]
    lines += [f"---@type any\n{_lua_path(name)} = nil\n" for name in CONSTANTS]
    for name in NAMES:
        if name not in families:
            lines += _lua_function(name)
    return "\n".join(lines).rstrip() + "\n"


def _families() -> dict[str, list[str]]:
    """Return the names that hold others, each with the last words of its members."""
    families: dict[str, list[str]] = {name: [] for name in INDEXED}
    for name in (*NAMES, *CONSTANTS):
        family, _, word = name.rpartition(".")
        if family:
            families.setdefault(family, []).append(word)
    return families


def _members(family: str, families: dict[str, list[str]]) -> list[str]:
    names = {name for name in (*NAMES, *CONSTANTS, *families) if name.rpartition(".")[0] == family}
    return sorted(names)


# Python ----------------------------------------------------------------------------------------------------------------------------


def _python_family(family: str, words: list[str]) -> Iterator[str]:
    families = _families()
    for name in _members(family, families):
        yield from _python_member(name, families, "self")
    if family in NAMES:
        yield from _python_function("__call__", NAMES[family], "self")
    if family in INDEXED:
        yield from ("def __getitem__(self, key: str) -> Any: ...", "def __getattr__(self, name: str) -> Any: ...")
        if INDEXED[family][1]:
            yield "def __setitem__(self, key: str, value: Any) -> None: ..."
            yield "def __setattr__(self, name: str, value: Any) -> None: ..."


def _python_member(name: str, families: dict[str, list[str]], first: str) -> list[str]:
    word = name.rpartition(".")[2]
    word = f"{word}_" if keyword.iskeyword(word) else word
    if name in families:
        return [f"{word}: {_class_of(name)}"]
    if name in CONSTANTS:
        return [f"{word}: Any"]
    return [*_python_function(word, NAMES[name], first)]


def _python_function(word: str, target: str, first: str) -> Iterator[str]:
    function = load_target(target)
    signature = inspect.signature(function)
    texts = [first] if first else []
    is_positional = True
    for parameter in signature.parameters.values():
        if is_positional and parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            texts.append("*")
        is_positional = parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        texts.append(_python_parameter(parameter))
    waits = "async " if inspect.iscoroutinefunction(function) else ""
    returned = _python_type(str(signature.return_annotation), is_result=True)
    yield f"{waits}def {word}({', '.join(texts)}) -> {returned}:"
    yield f"    {_documentation(function)!r}"


def _python_parameter(parameter: inspect.Parameter) -> str:
    stars = "*" * (parameter.kind is inspect.Parameter.VAR_POSITIONAL) + "**" * (
        parameter.kind is inspect.Parameter.VAR_KEYWORD
    )
    kind = "Event | str" if parameter.name == "event" else _python_type(str(parameter.annotation))
    default = " = ..." if parameter.default is not inspect.Parameter.empty else ""
    return f"{stars}{parameter.name}: {kind}{default}"


def _python_type(annotation: str, *, is_result: bool = False) -> str:
    """Return the annotation with `Any` for what plugins cannot import; a result of any kind can be used as it is."""
    if annotation == _SEVERAL:
        return "tuple[Any, ...]"
    if annotation == "object" and is_result:
        return "Any"
    tree = _Renamed().visit(ast.parse(annotation, mode="eval"))
    return ast.unparse(tree)


class _Renamed(ast.NodeTransformer):
    """Replaces names that a stub does not know."""

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(_python_name(node.id))

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        name = _python_name(ast.unparse(node.value))
        return ast.Name(name) if name == "Any" else ast.Subscript(ast.Name(name), self.visit(node.slice))


def _python_name(name: str) -> str:
    return "_list" if name == "list" else name if name in _KNOWN else "Any"


# Lua -------------------------------------------------------------------------------------------------------------------------------


def _lua_function(name: str) -> Iterator[str]:
    function = load_target(NAMES[name])
    yield from (f"--- {line}" for line in _documentation(function).split("\n"))
    parameters = [*inspect.signature(function).parameters.values()]
    for parameter in parameters:
        optional = "?" if parameter.default is not inspect.Parameter.empty else ""
        yield f"---@param {_lua_parameter(parameter)}{optional} {_lua_type_of(parameter)}"
    yield from (f"---@return {kind}" for kind in _lua_results(function))
    yield f"{_lua_path(name)} = function({', '.join(map(_lua_parameter, parameters))}) end"
    yield ""


def _lua_overload(name: str) -> tuple[str, ...]:
    function = load_target(NAMES[name])
    texts = [f"{_lua_parameter(p)}: {_lua_type_of(p)}" for p in inspect.signature(function).parameters.values()]
    results = ", ".join(_lua_results(function))
    return (f"---@overload fun({', '.join(texts)}){f': {results}' if results else ''}",)


def _lua_parameter(parameter: inspect.Parameter) -> str:
    if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        return "..."
    return f"{parameter.name}_" if parameter.name in _LUA_WORDS else parameter.name


def _lua_type_of(parameter: inspect.Parameter) -> str:
    return "cru.Event|string" if parameter.name == "event" else _lua_type(str(parameter.annotation))


def _lua_results(function: Callable[..., Any]) -> tuple[str, ...]:
    annotation = str(inspect.signature(function).return_annotation)
    if annotation == "None":
        return ()
    return ("any", "any") if annotation == _SEVERAL else (_lua_type(annotation),)


def _lua_type(annotation: str) -> str:
    """Return the annotation in the words of LuaLS, without what stands in brackets."""
    node: ast.expr = ast.parse(annotation, mode="eval").body
    kinds: list[str] = []
    while isinstance(node, ast.BinOp):
        kinds.append(_lua_name(node.right))
        node = node.left
    kinds.append(_lua_name(node))
    return "any" if "any" in kinds else "|".join(dict.fromkeys(reversed(kinds)))


def _lua_name(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        node = node.value
    return _LUA.get(ast.unparse(node), "any")


def _lua_path(name: str) -> str:
    return "cru" + "".join(f'["{word}"]' if word in _LUA_WORDS else f".{word}" for word in name.split("."))


# both ------------------------------------------------------------------------------------------------------------------------------


def _class_of(family: str) -> str:
    return "_" + family.title().replace(".", "").replace("_", "")


def _indented(lines: Iterator[str]) -> Iterator[str]:
    return (f"    {line}" for line in lines)


def _documentation(function: Callable[..., Any]) -> str:
    """Return what the function's docstring says, in one paragraph, and its example on a line of its own."""
    text, _, example = (function.__doc__ or "").partition("Example: ")
    return "\n".join(filter(None, (" ".join(text.split()), f"Example: {example.strip()}" if example else "")))
