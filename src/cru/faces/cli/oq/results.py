"""What `cru oq` prints: each result in the format that was asked for."""

from __future__ import annotations

import json

import msgspec

from cru.core.api import plain_data
from cru.core.api.host import BadArgument
from cru.core.base.values.errors import CruError
from cru.faces.cli.console import write
from cru.faces.cli.oq.options import OqOptions
from cru.features.formats.convert import is_json, write_unbounded

BETWEEN = {"json": "", "yaml": "---\n"}
"""What stands between two results. TOML and TOON have nothing for it."""


class NotWritable(CruError):
    """A result that the format has no form for."""

    code = 5


class Results:
    """Prints results, and remembers the last one.

    last: its JSON, None before the first
    """

    def __init__(self, options: OqOptions) -> None:
        self._options = options
        self.last: str | None = None

    def print(self, result: str) -> None:
        """One result, given as JSON on one line. Raises NotWritable."""
        options = self._options
        if not is_json(result):
            raise NotWritable(
                f"the result has no form in JSON: {result[:200]}",
                "NaN, infinite numbers, bytes, and keys that are no text",
            )
        if options.raw and result.startswith('"'):
            write(json.loads(result) + ("" if options.join else "\n"))
        elif options.output == "json":
            text = result if options.compact else msgspec.json.format(result, indent=2)
            write(text + ("" if options.join else "\n"))
        else:
            write(self._separated(_converted(result, options.output)))
        self.last = result

    def _separated(self, text: str) -> str:
        between = BETWEEN.get(self._options.output) if self.last is not None else ""
        if between is None:
            raise NotWritable(
                f"{self._options.output} has one value, and this is a second result", "an array has several: [ FILTER ]"
            )
        return between + text + ("" if text.endswith("\n") else "\n")


def _converted(result: str, format: str) -> str:
    value = json.loads(result)
    try:
        plain_data.check("the result", value)
        return write_unbounded("the result", value, format)
    except BadArgument as error:
        raise NotWritable(error.message) from error
