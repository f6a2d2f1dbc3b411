"""What is known of a model: its window and its price, by the settings, by its provider's list, by the table of genai-prices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from cru.core.models import ModelPrice
from cru.core.models.listing import ListedModel
from cru.core.models.prices import find_listing
from cru.core.turn.model_pool import ModelPool
from cru.core.turn.parts import ResolvedModel


class ModelFacts(Struct, frozen=True):
    """window: tokens, 0: not known; window_source: who says so, for people, "": the settings
    price: in words, with its source, "": not known
    """

    window: int = 0
    window_source: str = ""
    price: str = ""


def find_facts(models: ModelPool, resolved: ResolvedModel, listed: Sequence[ListedModel]) -> ModelFacts:
    """The first source that knows it; the table only for what is listed somewhere (it takes a third of a second to load)."""
    provider, name = resolved.model.provider, resolved.model.name
    own = models.own_price(provider, name)
    row = next((model for model in listed if model.id == name), ListedModel(name))
    window, source = resolved.window, ""
    price = f"{describe_price(own)} (your settings)" if own is not None else ""
    if not window and row.context_window:
        window, source = row.context_window, f"as {provider} lists it"
    if not price and row.price is not None:
        price = f"{describe_price(row.price)} (as {provider} lists it)"
    if (window and price) or not listed:
        return ModelFacts(window, source, price)
    table = find_listing(provider, name)
    if not window and table.context_window:
        window, source = table.context_window, "by genai-prices"
    if not price and table.price is not None:
        price = f"{describe_price(table.price)} (by genai-prices)"
    return ModelFacts(window, source, price)


def describe_price(price: ModelPrice) -> str:
    return f"${price.input:g} in, ${price.output:g} out for a million tokens"


def render_models(provider: str, models: Iterable[ListedModel]) -> list[str]:
    """One line a model: how it is named, its window and price as far as the provider says them."""
    rows = []
    for model in models:
        window = f"{model.context_window:,} tokens" if model.context_window else ""
        price = f"${model.price.input:g} in, ${model.price.output:g} out" if model.price is not None else ""
        rows.append((f"{provider}:{model.id}", "  ".join(filter(None, (window, price, model.label)))))
    width = max((len(name) for name, _ in rows), default=0)
    return [f"{name:<{width}}  {about}".rstrip() for name, about in rows]
