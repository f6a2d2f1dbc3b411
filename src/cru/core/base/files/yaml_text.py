"""The one place that reads and writes YAML: the core schema of YAML 1.2, with limits for texts of strangers.

Every mistake in a text raises BadYaml, and what a text costs is bounded by its length (docs/decisions/libraries.md)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")

SHORT = 4096
"""Characters that the loader in C reads safely however they are nested; it is seven times faster."""
MERGED_LIMIT = 10_000
"""Pairs that merge keys (`<<`) may bring. A few lines that merge what merges would otherwise bring any number."""
UNFOLDED = 1 << 30
"""A width of lines: long texts stay on one line."""
_TAG = "tag:yaml.org,2002:"
_CORE = {
    "null": (r"~|null|Null|NULL|", "~nN\0"),
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    "float": (
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+0123456789.",
    ),
    "merge": ("<<", "<"),
}
"""Tag → the scalars without quotes that have it, and their first characters. Merge keys are no part of the schema, but of many files."""
_PATTERNS = {name: re.compile(rf"(?:{pattern})\Z") for name, (pattern, _) in _CORE.items()}


class BadYaml(ValueError):
    """An error in a YAML text. line: from 1, 0 if it is not known."""

    def __init__(self, problem: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {problem}" if line else problem)
        self.problem = problem
        self.line = line


def parse_yaml(text: str) -> object:
    """Return the one document of a text, in plain types. Raises BadYaml."""
    import yaml

    return _call(lambda: yaml.load(text, _fast_loader() if _is_plain(text) else _bounded_loader()))


def parse_yaml_documents(text: str) -> Iterator[object]:
    """Yield the documents of a text, one after another. Raises BadYaml where one cannot be read."""
    import yaml

    documents = _call(lambda: yaml.load_all(text, _bounded_loader()))
    end = object()
    while (document := _call(lambda: next(documents, end))) is not end:
        yield document


def _call(work: Callable[[], T]) -> T:
    """Call the library, and raise all of its errors as BadYaml."""
    import yaml

    try:
        return work()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise BadYaml(error.problem or error.context or "cannot be read", mark.line + 1 if mark else 0) from error
    except RecursionError as error:
        raise BadYaml("nested too deep") from error
    except (yaml.YAMLError, ValueError) as error:
        raise BadYaml(str(error).partition("\n")[0]) from error
    except (LookupError, AttributeError, TypeError) as error:
        # its constructors raise these, for example for `!!timestamp x`
        raise BadYaml(f"a value does not fit its tag ({type(error).__name__}: {error})") from error


def _is_plain(text: str) -> bool:
    """Whether it is short, and nothing in it can be repeated by an alias."""
    import yaml

    return len(text) <= SHORT and "&" not in text and yaml.__with_libyaml__


def _core_resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """Return the library's table of implicit tags: first character of a scalar → tags to try; "" stands for an empty scalar."""
    table: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for name, (_, firsts) in _CORE.items():
        for first in firsts:
            table.setdefault(first.strip("\0"), []).append((_TAG + name, _PATTERNS[name]))
    return table


def _core_loader(base: Any) -> Any:
    """Return a loader class that takes scalars as YAML 1.2 does; the library's own ones follow YAML 1.1 (`on`, `22:22`, `017`)."""
    import yaml

    class CoreLoader(base):  # type: ignore[misc]  # it has no types
        yaml_implicit_resolvers = _core_resolvers()

        def construct_core(self, node: Any) -> object:
            name, text = node.tag.removeprefix(_TAG), str(self.construct_scalar(node))
            if not _PATTERNS[name].match(text):
                raise yaml.constructor.ConstructorError(
                    None, None, f"the value {text!r} does not fit its tag !!{name}", node.start_mark
                )
            if name == "bool":
                return text.lower() == "true"
            if name == "int":
                return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
            return float(text.replace(".", "", 1) if text[-1] in "fFnN" else text)

    for name in ("bool", "int", "float"):
        CoreLoader.add_constructor(_TAG + name, CoreLoader.construct_core)
    return CoreLoader


@cache
def _fast_loader() -> Any:
    import yaml

    return _core_loader(yaml.CSafeLoader)


@cache
def _bounded_loader() -> Any:
    """Return the loader in Python: the one in C crashes the process on deep nesting."""
    import yaml

    class BoundedLoader(_core_loader(yaml.SafeLoader)):  # type: ignore[misc]  # it has no types
        merging = merged = 0

        def scan_to_next_token(self) -> None:
            """Skip tabs between tokens, as the loader in C does. They are no indentation."""
            super().scan_to_next_token()
            while self.peek() == "\t" and (self.flow_level or not self.allow_simple_key):
                self.forward()
                super().scan_to_next_token()

        def flatten_mapping(self, node: Any) -> None:
            self.merging += 1
            super().flatten_mapping(node)
            self.merging -= 1
            if self.merging:  # it is merged into another one
                self.merged += len(node.value)
            if self.merged > MERGED_LIMIT:
                raise yaml.constructor.ConstructorError(None, None, "merge keys bring too much", node.start_mark)

    return BoundedLoader


def write_yaml(value: object) -> str:
    """Return plain data as one document that reads as it was."""
    import yaml

    written: str = yaml.dump(
        value, Dumper=_exact_dumper(), sort_keys=False, allow_unicode=True, default_flow_style=False, width=UNFOLDED
    )
    # behind a value that stands alone it puts the mark of an end
    return written[:-4] if written.endswith("\n...\n") else written


@cache
def _exact_dumper() -> Any:
    """Return the safe dumper, which folds some line ends of Unicode into blanks. Readers of YAML 1.1 and 1.2 understand what it writes:
    a text that is something else in either of them is written in quotes."""
    import yaml

    class ExactDumper(yaml.SafeDumper):  # type: ignore[misc]  # it has no types
        def represent_text(self, text: str) -> Any:
            style = '"' if any(end in text for end in "\x85\u2028\u2029") else "|" if "\n" in text else None
            return self.represent_scalar(_TAG + "str", text, style=style)

    ExactDumper.add_representer(str, ExactDumper.represent_text)
    for name, (_, firsts) in _CORE.items():
        ExactDumper.add_implicit_resolver(_TAG + name, _PATTERNS[name], list(firsts.strip("\0")))
    return ExactDumper
