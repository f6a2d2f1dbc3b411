"""Messages in, deltas out. Here: the settings of which model, and how it is asked."""

from math import inf
from typing import ClassVar, Literal

from msgspec import Struct

from cru.core.base.values.messages import Usage


class ModelAlias(Struct, frozen=True):
    """`[models."name"]`: another name for a model, or facts about one.

    model: the id; "": the name itself is the id
    context_window: tokens
    api: parameters as in `[api]`
    images: whether it takes images; None: as its id tells
    input_price, output_price, cache_read_price, cache_write_price: US dollars for a million tokens; None: not known, of the last two:
    as input_price
    """

    model: str = ""
    context_window: int | None = None
    api: dict[str, object] = {}
    input_price: float | None = None
    output_price: float | None = None
    cache_read_price: float | None = None
    cache_write_price: float | None = None
    images: bool | None = None


class ModelPrice(Struct, frozen=True):
    """US dollars for a million tokens."""

    input: float
    output: float
    cache_read: float
    cache_write: float

    def cost(self, usage: Usage) -> float:
        """Of a request that used so many tokens, in US dollars."""
        plain = max(usage.input - usage.cache_read - usage.cache_write, 0)
        whole = plain * self.input + usage.cache_read * self.cache_read + usage.cache_write * self.cache_write
        return (whole + usage.output * self.output) / 1_000_000


def price_of(alias: ModelAlias) -> ModelPrice | None:
    """What settings say that a model costs; None if they do not say it of input and output."""
    if alias.input_price is None or alias.output_price is None:
        return None
    read, write = alias.cache_read_price, alias.cache_write_price
    return ModelPrice(
        alias.input_price,
        alias.output_price,
        alias.input_price if read is None else read,
        alias.input_price if write is None else write,
    )


API_RANGES: dict[str, tuple[float, float]] = {
    "temperature": (0, inf),
    "max_tokens": (1, inf),
    "top_p": (0, 1),
    "reasoning.max_tokens": (0, inf),
}


_SECONDS = (0.01, 604_800)
_PRICES = ("input_price", "output_price", "cache_read_price", "cache_write_price")


class ModelSettings(Struct, frozen=True):
    """The settings of this room; `api` is the merge of `[api]` over all layers."""

    RANGES: ClassVar[dict[str, tuple[float, float]]] = {
        "models.*.context_window": (0, inf),
        **dict.fromkeys((f"models.*.{name}" for name in _PRICES), (0, inf)),
        **dict.fromkeys(("connect_timeout", "first_byte_timeout", "idle_timeout"), _SECONDS),
        **dict.fromkeys(("stall_timeout", "reply_timeout"), _SECONDS),
        "request_tries": (1, 100),
        "reply_size_limit": (1, inf),
        **{f"api.{key}": limits for key, limits in API_RANGES.items()},
        **{f"models.*.api.{key}": limits for key, limits in API_RANGES.items()},
    }

    model: str = ""
    api_key: str = ""
    base_url: str = ""
    api: dict[str, object] = {}
    models: dict[str, ModelAlias] = {}
    categories: dict[str, list[str]] = {}
    connect_timeout: float = 10.0
    first_byte_timeout: float = 120.0
    idle_timeout: float = 300.0
    stall_timeout: float = 900.0
    reply_timeout: float = 3600.0
    request_tries: int = 4
    reply_size_limit: int = 16_000_000

    def __post_init__(self) -> None:
        for name, members in self.categories.items():
            if not members or not all(member.strip() for member in members):
                raise ValueError(f'the category `{name}` needs models: {name} = ["PROVIDER:MODEL", …]')


DOCS: dict[str, str] = {
    "model": "the model, `[provider:]id`; providers: openrouter, openai, anthropic, ollama, lmstudio, llamacpp, vllm, local, scripted, and "
    "openai_compatible and anthropic_compatible for the server at `base_url`",
    "api_key": "the key for `base_url`, or for OpenRouter if no `base_url` is set; better kept in an environment variable",
    "base_url": "a server for models without `provider:` and for `openai_compatible:` and `anthropic_compatible:`, as `…/v1` or as the "
    "full `…/chat/completions`",
    "api": "parameters of every request: temperature, max_tokens, reasoning.effort, prompt_caching, …",
    "models": "aliases: an id, a `context_window`, [`images`](models.md#images), an `api` table (it wins over `[api]`, except "
    "over that of local.toml and `-s`) and "
    "[prices](models.md#prices) for each name: US dollars for a million tokens",
    "models.NAME.model": "the id of the model; without it, the name itself is the id",
    "models.NAME.context_window": "the size of its context window in tokens",
    "models.NAME.api": "parameters of requests to it, as in `[api]`",
    "models.NAME.input_price": "US dollars for a million tokens of input",
    "models.NAME.output_price": "US dollars for a million tokens of output",
    "models.NAME.cache_read_price": "US dollars for a million tokens read from the cache; default: `input_price`",
    "models.NAME.cache_write_price": "US dollars for a million tokens written to the cache; default: `input_price`",
    "models.NAME.images": "whether it takes images; default: as its id suggests",
    "categories": '`NAME = ["MODEL", …]`: a name for several models; where one fails the next answers ([categories](models.md#categories))',
    "connect_timeout": "seconds that a connection to a server may take",
    "first_byte_timeout": "seconds until a model's answer must begin; a slow server may need more for a long prompt",
    "idle_timeout": "seconds that a server may send nothing in the middle of an answer",
    "stall_timeout": "seconds that a server may send nothing but keep-alives in the middle of an answer",
    "reply_timeout": "seconds that a whole answer may take",
    "request_tries": "how often a request is sent at most if the server is busy or the connection breaks before the answer; silence "
    "and refusals are not tried again",
    "reply_size_limit": "characters that one reply may have, its thinking and the arguments of its calls included",
}

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]

API_KEYS: dict[str, object] = {
    "temperature": float,
    "max_tokens": int,
    "top_p": float,
    "stop": list[str],
    "tool_choice": str | dict[str, object],
    "frequency_penalty": float,
    "presence_penalty": float,
    "seed": int,
    "response_format": dict[str, object],
    "parallel_tool_calls": bool,
    "prompt_caching": bool,
    "reasoning.effort": Effort,
    "reasoning.max_tokens": int,
    "reasoning.exclude": bool,
    "reasoning.enabled": bool,
}
"""Every key that an `api` table may hold, with its type; a dot is a table in it."""


def check_api(api: dict[str, object]) -> list[str]:
    """What is wrong in an `api` table, one sentence each: unknown keys, wrong types, contradictions."""
    if not api:
        return []
    flat = {key: value for key, value in api.items() if key != "reasoning"}
    reasoning = api.get("reasoning", {})
    if not isinstance(reasoning, dict):
        return [f"api.reasoning: expected a table, got {type(reasoning).__name__}"]
    flat |= {f"reasoning.{key}": value for key, value in reasoning.items()}
    problems = [sentence for key, value in flat.items() if (sentence := _check_key(key, value))]
    if "effort" in reasoning and "max_tokens" in reasoning:
        problems.append("api.reasoning: effort and max_tokens exclude each other")
    return problems


def _check_key(key: str, value: object) -> str:
    import msgspec

    from cru.core.base.config.closest import closest

    if key not in API_KEYS:
        near = closest(key, API_KEYS)
        return f"api: unknown key `{key}`" + (f", did you mean `{near}`?" if near else "")
    try:
        msgspec.convert(value, API_KEYS[key])
    except msgspec.ValidationError as error:
        return f"api.{key}: {error}"
    return ""


def merge_api(api: dict[str, object], over: dict[str, object]) -> dict[str, object]:
    """Two `api` tables as one: `over` wins, `reasoning` is merged key by key (effort and max_tokens replace each other)."""
    result = {**api, **over}
    lower, higher = api.get("reasoning"), over.get("reasoning")
    if isinstance(lower, dict) and isinstance(higher, dict):
        if "effort" in higher or "max_tokens" in higher:
            lower = {key: value for key, value in lower.items() if key not in ("effort", "max_tokens")}
        result["reasoning"] = {**lower, **higher}
    return result
