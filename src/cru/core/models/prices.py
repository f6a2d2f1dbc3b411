"""What requests cost by the table of genai-prices (the extra `prices`; docs/decisions/models.md). Loaded when somebody
asks for a cost that neither the provider nor the settings say; the table comes with the library, nothing is fetched."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from time import time
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from cru.core.base.values.messages import Usage
from cru.core.models import ModelPrice
from cru.core.models.providers import ANTHROPIC, CUSTOM, OPENAI, OPENROUTER

INSTALL = "pip install 'cru[prices]'"
_LISTED = (OPENROUTER, OPENAI, ANTHROPIC)
_HERE = ("localhost", "127.0.0.1", "::1", "0.0.0.0")

Pricer = Callable[..., Any]


def table_cost(provider: str, model: str, base_url: str, usage: Usage, at: float = 0.0) -> float | None:
    """In US dollars, by the prices of that time (Unix seconds; 0 = now); None if they are not known. What runs in this process is free."""
    if provider == "local":
        return 0.0
    if provider not in _LISTED and (provider != CUSTOM or _is_here(base_url)):
        return None
    pricer, _ = load_table()
    if pricer is None:
        return None
    from genai_prices import Usage as TableUsage

    tokens = TableUsage(
        input_tokens=usage.input, output_tokens=usage.output, cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
    )  # fmt: skip
    where = {"provider_id": provider} if provider in _LISTED else {"provider_api_url": base_url}
    try:
        price = pricer(tokens, model, genai_request_timestamp=datetime.fromtimestamp(at or time(), UTC), **where)
    except (LookupError, ValueError):  # no such model in the table; counts that contradict one another
        return None
    return float(price.total_price)


@cache
def load_table() -> tuple[Pricer | None, str]:
    """What tells a price, or None and why there is no table."""
    try:
        from genai_prices import calc_price
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "genai_prices":
            return None, f"no table of prices is installed: {INSTALL}"
        return None, f"the table of prices cannot be loaded: {error}"
    except Exception as error:  # noqa: BLE001  the boundary around a library: it is told, and prices stay unknown
        return None, f"the table of prices cannot be loaded: {type(error).__name__}: {error}"
    return calc_price, ""


class TableEntry(Struct, frozen=True):
    """What the table says of a model; None: nothing."""

    context_window: int | None = None
    price: ModelPrice | None = None


@cache
def find_listing(provider: str, model: str) -> TableEntry:
    """What the table says of a provider's model; nothing if it is not installed, or does not know it."""
    if provider not in _LISTED or load_table()[0] is None:
        return TableEntry()
    from genai_prices import Usage as TableUsage

    million = 1_000_000
    kinds = ({"input_tokens": million}, {"output_tokens": million})
    costs = [_calculate(TableUsage(**kind), model, provider) for kind in kinds]
    if costs[0] is None or costs[1] is None:
        return TableEntry()
    window = getattr(costs[0].model, "context_window", None)
    plain, output = float(costs[0].total_price), float(costs[1].total_price)
    return TableEntry(window if isinstance(window, int) else None, ModelPrice(plain, output, plain, plain))


def _calculate(usage: Any, model: str, provider: str) -> Any:
    pricer, _ = load_table()
    try:
        return pricer(usage, model, provider_id=provider) if pricer is not None else None
    except (LookupError, ValueError):
        return None


def _is_here(base_url: str) -> bool:
    """A server of this machine has no public price."""
    return not base_url or (urlsplit(base_url).hostname or "") in _HERE
