"""An output in which a key stands twice: programs take the last one, and a refusal before it would be lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from cru.core.events.answers import STRENGTH, strength
from cru.core.hooks.model.result import HookResult, HookRun
from cru.core.hooks.parsing.common import BLANK

MOST_READINGS = 4
"""Of a key that stands more often the first ones and the last count."""


def read_every_value(run: HookRun, read: Callable[[HookRun], HookResult]) -> HookResult:
    """The result of what a hook printed. Where a key stands more than once, a reading that refuses or asks beats the last one's, and the
    person is told."""
    result = read(run)
    text = run.stdout.strip(BLANK)
    if not text.startswith("{"):
        return result
    repeated = _find_repeated(text)
    if not repeated:
        return result
    for place in range(MOST_READINGS):
        other = read(replace(run, stdout=_choose(text, place)))
        if strength(other.answer) >= STRENGTH["ask"] and strength(other.answer) > strength(result.answer):
            result = other
    warning = f"its output has {', '.join(f'`{key}`' for key in repeated)} more than once"
    return replace(result, warning="; ".join(filter(None, (warning, result.warning))))


def _find_repeated(text: str) -> list[str]:
    """Keys that stand more than once in one object with different values; [] for what is no JSON."""
    keys: dict[str, None] = {}

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        table = dict(pairs)
        if len(table) < len(pairs):
            keys.update((key, None) for key, value in pairs if table[key] != value)
        return table

    try:
        json.loads(text, object_pairs_hook=collect)
    except (ValueError, RecursionError):
        return []
    return list(keys)


def _choose(text: str, place: int) -> str:
    """The same with the value at this place (the last, if there are fewer) of each key that stands more than once."""

    def choose(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values: dict[str, list[Any]] = {}
        for key, value in pairs:
            values.setdefault(key, []).append(value)
        return {key: several[min(place, len(several) - 1)] for key, several in values.items()}

    return json.dumps(json.loads(text, object_pairs_hook=choose))
