"""YAML of other people's: every mistake in it is one kind of error, and what it costs to read is bounded by its length."""

from __future__ import annotations

from functools import cache
from typing import Any

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

    try:
        return yaml.load(text, yaml.CSafeLoader if _is_plain(text) else _bounded_loader())
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
