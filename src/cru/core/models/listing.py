"""What a provider has: its list of models, and whether it accepts a key.

Sources: https://platform.openai.com/docs/api-reference/models, https://docs.anthropic.com/en/api/models-list,
https://openrouter.ai/docs/api-reference/list-available-models; windows of vLLM (`max_model_len`) and llama.cpp (`meta.n_ctx`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

import msgspec
from msgspec import Struct

from cru.core.base.config.secret import mask_url
from cru.core.base.net import NetError
from cru.core.base.net.redirects import within_origin
from cru.core.base.net.transport import Transport
from cru.core.base.values.visible import visible
from cru.core.models import ModelPrice
from cru.core.models.anthropic import VERSION
from cru.core.models.failures import is_wrong_key
from cru.core.models.protocol import ModelError
from cru.core.models.providers import COMPATIBLE, OPENAI, OPENROUTER, PROVIDERS

SECONDS = 10.0
MOST_BYTES = 16 << 20
MOST_TOKENS = 1 << 40
"""A window beyond this is none: it is kept in settings, which have no larger whole numbers than 64 bits."""
SHOWN = 300
"""Characters of a server's own words."""
_NAME = re.compile(r"[!-~][ -~]{0,255}")
"""What may be a model's id: it stands in settings, on the command line and in the input."""
_WINDOWS = ("context_length", "max_model_len", "context_window", "max_input_tokens")
_NO_CHAT = (
    "embed", "whisper", "tts", "dall-e", "moderation", "realtime", "audio", "image", "transcribe", "sora", "davinci", "babbage", "rerank",
)  # fmt: skip
"""Parts of the names of models that answer no chat."""


class ListedModel(Struct, frozen=True):
    """A model as its provider lists it.

    label: its name for people, "" if it has none
    context_window: tokens, None: the provider does not say
    price: None: the provider does not say
    created: Unix seconds, 0: the provider does not say
    """

    id: str
    label: str = ""
    context_window: int | None = None
    price: ModelPrice | None = None
    created: float = 0.0

    def has(self, words: Iterable[str]) -> bool:
        """Whether all of these are in its names."""
        names = f"{self.id} {self.label}".casefold()
        return all(word.casefold() in names for word in words)


class ListUnavailable(ModelError):
    """The provider gives no list: it does not answer, or has none."""


class KeyRefused(ListUnavailable):
    """The provider does not accept the key, or wants one."""


async def list_models(
    transport: Transport, provider: str, base_url: str, key: str, more: Mapping[str, str] | None = None,
    seconds: float = SECONDS,
) -> tuple[ListedModel, ...]:  # fmt: skip
    """The models that answer a chat, the newest first if the provider says when they came. `more`: further headers. Raises ListUnavailable
    and KeyRefused; no message holds the key."""
    headers = _headers(provider, key) | dict(more or {})
    listed = await _get(transport, provider, _url(provider, base_url), headers, seconds)
    if provider == OPENROUTER and key and PROVIDERS[OPENROUTER].base_url == base_url:
        await _get(transport, provider, f"{base_url}/key", headers, seconds)  # its list is for everybody
    rows = listed.get("data") if isinstance(listed, dict) else None
    if not isinstance(rows, list):
        raise ListUnavailable(f"{_server(provider, base_url)} gives no list of models")
    models = tuple(model for row in rows if (model := _read_row(row)) is not None)
    return tuple(sorted(models, key=lambda model: -model.created)) if provider == OPENAI else models


async def _get(transport: Transport, provider: str, url: str, headers: dict[str, str], seconds: float) -> Any:
    try:
        page = await transport.get(
            url, headers, limit_bytes=MOST_BYTES, timeout=seconds, max_redirects=2, leave=within_origin
        )
    except NetError as error:
        raise ListUnavailable(f"{_server(provider, url)} does not answer: {error.message}", error.hint) from error
    if is_wrong_key(page.status, page.body[:4096].decode("utf-8", "replace")):
        text = "wants a key" if not headers.keys() & {"authorization", "x-api-key"} else "does not accept the key"
        who = _server(provider, url) if provider in COMPATIBLE else provider
        raise KeyRefused(f"{who} {text} ({page.status}{_words(page.body, headers)})")
    if page.status != 200:
        raise ListUnavailable(f"{_server(provider, url)} answered {page.status}{_words(page.body, headers)}")
    try:
        return msgspec.json.decode(page.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ListUnavailable(f"{_server(provider, url)} gives no list of models: its answer is no JSON") from error


def _headers(provider: str, key: str) -> dict[str, str]:
    headers = {"accept": "application/json", "user-agent": "cru"}
    if PROVIDERS[provider].kind == "anthropic":
        return headers | {"anthropic-version": VERSION} | ({"x-api-key": key} if key else {})
    return headers | ({"authorization": f"Bearer {key}"} if key else {})


def _url(provider: str, base_url: str) -> str:
    if PROVIDERS[provider].kind == "anthropic":
        from cru.core.models.anthropic import endpoint

        base, mark, query = endpoint(base_url).partition("?")
        return base.removesuffix("/messages") + "/models?" + "&".join(filter(None, ("limit=1000", query)))
    from cru.core.models.openai_compatible import endpoint

    base, mark, query = endpoint(base_url).partition("?")
    return base.removesuffix("/chat/completions") + "/models" + mark + query


def _read_row(row: object) -> ListedModel | None:
    """None if it is none, or answers no chat."""
    identity = row.get("id") if isinstance(row, dict) else None
    if not isinstance(row, dict) or not isinstance(identity, str) or not _NAME.fullmatch(identity):
        return None
    if any(part in identity.casefold() for part in _NO_CHAT):
        return None
    label = row.get("display_name") or row.get("name")
    created = _number(row.get("created"))
    return ListedModel(
        identity,
        visible(label[:SHOWN]) if isinstance(label, str) and label != identity else "",
        _window(row),
        _price(row.get("pricing")),
        created if created is not None else 0.0,
    )


def _window(row: dict[str, Any]) -> int | None:
    about = row.get("meta")
    sizes = [row.get(name) for name in _WINDOWS]
    if isinstance(about, dict):
        sizes += [
            about.get("n_ctx"),
            about.get("n_ctx_train"),
        ]  # what llama.cpp serves may be less than the model was trained for
    return next((size for size in sizes if type(size) is int and 0 < size <= MOST_TOKENS), None)


def _price(pricing: object) -> ModelPrice | None:
    """Of US dollars for a token, as OpenRouter writes them; a price below 0 is none."""
    if not isinstance(pricing, dict):
        return None
    try:
        plain = [float(pricing[name]) * 1e6 for name in ("prompt", "completion")]
        read = float(pricing.get("input_cache_read") or pricing["prompt"]) * 1e6
        write = float(pricing.get("input_cache_write") or pricing["prompt"]) * 1e6
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    prices = (*plain, read, write)
    return ModelPrice(*prices) if all(isfinite(price) and price >= 0 for price in prices) else None


def _number(value: object) -> float | None:
    """None: it is none, or larger than any."""
    try:
        number = float(value) if isinstance(value, int | float) else None
    except OverflowError:
        return None
    return number if number is not None and isfinite(number) else None


def _words(body: bytes, headers: Mapping[str, str]) -> str:
    """What the server says of an error, without the key that it may repeat."""
    try:
        error = msgspec.json.decode(body).get("error")
        text = error.get("message") if isinstance(error, dict) else error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, AttributeError):
        return ""
    if not isinstance(text, str) or not text.strip():
        return ""
    for name in ("authorization", "x-api-key"):
        if secret := headers.get(name, "").removeprefix("Bearer "):
            text = text.replace(secret, "***")
    return ": " + " ".join("".join(char for char in text[:SHOWN] if char.isprintable() or char == "\n").split())


def _server(provider: str, url: str) -> str:
    """For people, who know their own servers by the address."""
    return f"{'the server' if provider in COMPATIBLE else provider} at {_shown(url)}"


def _shown(url: str) -> str:
    return mask_url(url).removesuffix("/models")
