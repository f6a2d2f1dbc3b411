"""YAML of other people's: every mistake in it is one kind of error, and what it costs to read is bounded by its length."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")

SHORT = 4096
"""Characters that the loader in C reads safely however they are nested; it is seven times faster."""
MERGED_LIMIT = 10_000
"""Pairs that merge keys (`<<`) may bring. A few lines that merge what merges would otherwise bring any number."""


class BadYaml(ValueError):
    """A text that is no YAML. line: from 1, 0 if nobody knows."""

    def __init__(self, problem: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {problem}" if line else problem)
        self.problem = problem
        self.line = line


def parse_yaml(text: str) -> object:
    """Its one document, in plain types. Raises BadYaml."""
    import yaml

    return _told(lambda: yaml.load(text, yaml.CSafeLoader if _is_plain(text) else _bounded_loader()))


def parse_yaml_documents(text: str) -> Iterator[object]:
    """Its documents, one after another. Raises BadYaml where one cannot be read."""
    import yaml

    documents = _told(lambda: yaml.load_all(text, _bounded_loader()))
    end = object()
    while (document := _told(lambda: next(documents, end))) is not end:
        yield document


def _told(work: Callable[[], T]) -> T:
    """What the library makes of a text; whatever it raises is a BadYaml."""
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
        # its constructors raise these, of `!!bool x`, `!!int ''`, `!!timestamp x`
        raise BadYaml(f"a value does not fit its tag ({type(error).__name__}: {error})") from error


def _is_plain(text: str) -> bool:
    """Whether it is short, and nothing in it can be repeated by an alias."""
    import yaml

    return len(text) <= SHORT and "&" not in text and yaml.__with_libyaml__


@cache
def _bounded_loader() -> Any:
    """The safe loader in Python: the one in C crashes the process on deep nesting."""
    import yaml

    class BoundedLoader(yaml.SafeLoader):  # type: ignore[misc]  # it has no types
        merging = merged = 0

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
    """Plain data as one document that reads as it was."""
    import yaml

    written: str = yaml.dump(
        value, Dumper=_exact_dumper(), sort_keys=False, allow_unicode=True, default_flow_style=False
    )
    # behind a value that stands alone it puts the mark of an end
    return written[:-4] if written.endswith("\n...\n") else written


@cache
def _exact_dumper() -> Any:
    """The safe one, which folds some line ends of Unicode into blanks."""
    import yaml

    class ExactDumper(yaml.SafeDumper):  # type: ignore[misc]  # it has no types
        def represent_text(self, text: str) -> Any:
            style = '"' if any(end in text for end in "\x85\u2028\u2029") else None
            return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    ExactDumper.add_representer(str, ExactDumper.represent_text)
    return ExactDumper
