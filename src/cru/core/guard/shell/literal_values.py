"""The values of names that a command line gives and uses itself (`x=git; $x push`), written out for rules that need suspicion only."""

from __future__ import annotations

import re

_VALUE = r"""(?:'([^'\n]{0,80})'|"([^"\n$`\\]{0,80})"|([^\s'"$`\\;|&()<>]{1,80}))"""
_GIVEN = re.compile(rf"(?<![\w$-])(alias[ \t]{{1,9}})?([A-Za-z_]\w{{0,40}})={_VALUE}")
_LOOP = re.compile(r"(?<!\w)for[ \t]{1,9}(\w{1,40})[ \t]{1,9}in[ \t]([^;\n]{1,200})")
_USED = re.compile(r"\$\{?([A-Za-z_]\w{0,40})(?:\[[@*\d]\])?\}?")
_PRINTED = re.compile(
    r"(?:\$\(|`)[ \t]{0,9}(?:which|command -v|type -[pP]|echo|printf)[ \t]{1,9}['\"]?([\w./-]{1,80})['\"]?[ \t]{0,9}[)`]"
)
_MOST_NAMES = 20
_MOST_VALUES = 4
"""Of one name, in the order of the text."""
_MOST_USES = 500


def write_out_values(text: str, unusable: str = "") -> str:
    """Return the text once for each value of its names, "" if it uses none that it gives.

    unusable: characters of which none may stand in a value that a loop gives
    """
    printed = _PRINTED.sub(r"\1", text)
    variables, aliases = _names_of(printed, unusable)
    rounds = min(max(map(len, (*variables.values(), *aliases.values())), default=1), _MOST_VALUES)
    texts = dict.fromkeys(_written_out(printed, variables, aliases, place) for place in range(rounds))
    return "\n".join(each for each in texts if each != text)


def _names_of(text: str, unusable: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    variables: dict[str, list[str]] = {}
    aliases: dict[str, list[str]] = {}
    for alias, name, *values in _GIVEN.findall(text):
        table = aliases if alias else variables
        if name in table or len(table) < _MOST_NAMES:
            table.setdefault(name, []).append("".join(values))
    for name, words in _LOOP.findall(text):
        values = words.replace("'", "").replace('"', "").split()
        variables.setdefault(name, []).extend(value for value in values if not any(char in value for char in unusable))
    return variables, aliases


def _written_out(text: str, variables: dict[str, list[str]], aliases: dict[str, list[str]], place: int) -> str:
    def value(match: re.Match[str]) -> str:
        values = variables.get(match[1])
        return values[min(place, len(values) - 1)] if values else match[0]

    text = _USED.sub(value, text, count=_MOST_USES)
    for name, values in aliases.items():
        own = values[min(place, len(values) - 1)]
        text = re.sub(rf"(?<![\w./$-]){name}(?![\w./=-])", lambda _, own=own: own, text, count=_MOST_USES)  # type: ignore[misc]
    return text
