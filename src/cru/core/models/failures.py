"""What went wrong with a request: a provider's words as our errors, how much a reply may hold, and when to ask again."""

import re
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from cru.core.models.protocol import (
    BrokenReply,
    ContentRefused,
    ContextTooLong,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    OutOfCredit,
)

_FORBIDDEN = ("content_filter", "content_policy_violation", "moderation_blocked", "requires moderation", "was flagged")
"""Codes and sentences (lower case) by which providers say that their rules forbid what a request holds."""

_WRONG_KEY = ("api key not valid", "incorrect api key", "invalid api key", "invalid_api_key", "no_db_connection")
"""Words (lower case) of Gemini, of xAI, and of a LiteLLM that knows its master key only and has no database of others."""

_NOT_TAKEN: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("jinja", "roles must alternate", "chat template"),
        "the model's chat template does not take this conversation: start the server with one that knows tools "
        "(llama.cpp: `--chat-template chatml`)",
    ),
    (
        (
            "image input",
            "not support image",
            "only supported by certain models",
            "variant `image_url`",
            "not a multimodal model",
        ),
        '`/undo` removes the prompt with the image; `images = false` in [models."NAME"] sends the names of images instead',
    ),
)
"""Words (lower case) of errors that a second request would only repeat, and the next step. Their status does not matter."""

_STATUS_OF_TYPE = {
    "overloaded_error": 529,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "server_error": 500,
    "api_error": 500,
    "timeout_error": 504,
    "authentication_error": 401,
    "permission_error": 403,
    "insufficient_quota": 402,
}
"""For errors that come inside a stream, where no status is left to say it."""


class ErrorObject(Struct):
    """The `error` of OpenAI, OpenRouter, Anthropic and llama.cpp."""

    message: str | None = None
    code: int | str | None = None
    type: str | None = None
    metadata: object = None


class _ErrorBody(Struct):
    error: ErrorObject | str | None = None
    message: str | None = None
    detail: object = None


_decode = msgspec.json.Decoder(_ErrorBody).decode


_SHORTEST_IN_WORDS = 8


class RequestFacts(Struct, frozen=True):
    """Where a request goes, for messages.

    provider: its name
    model: the id of the model
    key_name: the variable or setting that the key came from
    key: the key itself
    hidden: what else no message may show
    window: tokens of the model's context; 0: unknown
    """

    provider: str
    model: str
    key_name: str = ""
    key: str = ""
    hidden: tuple[str, ...] = ()
    window: int = 0

    def __repr__(self) -> str:
        return f"RequestFacts({self.provider!r}, {self.model!r}, {self.key_name!r})"

    def without_keys(self, text: str) -> str:
        """Return a server's text without the keys that it may repeat. A short one is hidden only where it is a whole word."""
        for secret in (self.key, *self.hidden):
            if len(secret) >= _SHORTEST_IN_WORDS:
                text = text.replace(secret, "***")
            elif secret and secret in text:
                text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "***", text)
        return text


def error_for_status(facts: RequestFacts, status: int, body: bytes, size: int = 0) -> ModelError:
    """Return the error that an HTTP status and its body stand for. size: bytes of the request"""
    from cru.core.models.overflow import flatten, is_silent_overflow

    error = ErrorObject()
    try:
        reply = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        error.message = body[:500].decode("utf-8", "replace").strip()
    else:
        error = to_error_object(reply.error) or ErrorObject(reply.message or str(reply.detail or ""))
    original = flatten(body)
    if not original.strip() and is_silent_overflow(status, size, facts.window):
        return _too_long(f"{facts.provider} answered {status}, without a reason, to a request that fills the context")
    return error_for(facts, status, error, original)


def to_error_object(error: ErrorObject | str | None) -> ErrorObject | None:
    """Return the error that a field `error` holds. None if it is empty: some servers send it with every event."""
    if isinstance(error, str):
        error = ErrorObject(error)
    return error if error and (error.message or error.code or error.type or error.metadata) else None


def error_for_object(facts: RequestFacts, error: ErrorObject) -> ModelError:
    """The error that an `error` object inside a 200 reply stands for."""
    code = str(error.code)
    is_status = len(code) == 3 and code.isdecimal() and 400 <= int(code) < 600
    status = int(code) if is_status else _STATUS_OF_TYPE.get(error.type or code, 0)
    failure = error_for(facts, status, error)
    failure.status = status
    return failure


_FAILED_REASONS = (
    *("error", "abort", "aborted", "cancelled", "canceled", "failed", "timeout", "network_error", "model_error"),
    *("server_error", "insufficient_system_resource", "malformed_function_call"),
)
"""Reasons (lower case) with which replies end that are not whole."""


def check_reason(facts: RequestFacts, reason: str) -> None:
    """Raise the ModelError that a finish reason stands for, if it is one of an error."""
    if reason.lower() in _FAILED_REASONS:
        text = f"the provider stopped with an error (finish_reason `{reason}`)"
        raise error_for_object(facts, ErrorObject(text))


def error_for(facts: RequestFacts, status: int, error: ErrorObject, original: str = "") -> ModelError:
    """Return the error that a server's words stand for. original: all that it wrote, keys included; "": the message of `error`"""
    from cru.core.models.overflow import is_overflow

    text = _error_text(facts, error)
    message = f"{facts.provider}: {text}" if text else f"{facts.provider} answered {status}"
    if status and text:
        message = f"{facts.provider} answered {status}: {text}"
    code = f"{error.code} {error.type}".lower()
    if is_overflow(status, code, original or _raw_text(error)):
        return _too_long(message)
    if status in (0, 400, 403, 451) and any(word in f"{code} {text}".lower() for word in _FORBIDDEN):
        return ContentRefused(message, "say it in other words, or name another model with `model`")
    return _error_of_status(facts, status, error, message)


def moved_error(facts: RequestFacts, url: str, status: int, location: str) -> ModelError:
    """Return the error for a redirect, which is not followed: the key would go to a server that nobody named."""
    from urllib.parse import urljoin, urlsplit

    try:
        parts = urlsplit(urljoin(url, location))
        target = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    except ValueError:
        target = location
    target = facts.without_keys("".join(char for char in target[:300] if char.isprintable()))
    for path in ("/chat/completions", "/messages"):
        target = target.removesuffix(path)
    return ModelRefused(
        f"{facts.provider} answered {status}: the server has moved to {target}",
        f'if you trust that address, set `base_url = "{target}"`; nothing was sent there',
    )


def is_wrong_key(status: int, text: str) -> bool:
    """Return whether a server that answers with this status and text does not know the key. Some answer 400 then, not 401."""
    return status in (401, 403) or (status == 400 and any(word in text.lower() for word in _WRONG_KEY))


def _too_long(message: str) -> ContextTooLong:
    return ContextTooLong(
        message, "a shorter prompt may fit; `/compact` shortens the conversation; `/clear` starts from nothing"
    )


def _error_of_status(facts: RequestFacts, status: int, error: ErrorObject, message: str) -> ModelError:
    if is_wrong_key(status, f"{error.code} {error.type} {error.message}"):
        return ModelRefused(message, _key_hint(facts))
    if status == 402 or "insufficient_quota" in (error.code, error.type):
        return OutOfCredit(message, f"the account of {facts.provider} has no credit left for this request")
    text = message.lower()
    for words, hint in _NOT_TAKEN:
        if status != 429 and any(word in text for word in words):
            return ModelRefused(message, hint)
    if status == 404:
        return ModelRefused(message, f"is the model id {facts.model!r} right, and base_url?")
    if is_retryable_status(status):
        return ModelUnavailable(message, "try again later, or name another model with `model`")
    if status:
        return ModelRefused(message)
    return BrokenReply(message)


def _error_text(facts: RequestFacts, error: ErrorObject) -> str:
    """The provider's message, with what the host behind a router said; never the key."""
    text = facts.without_keys(_raw_text(error))
    text = "".join(char for char in text[:1000] if char.isprintable() or char.isspace())  # it goes to a terminal
    return " ".join(text.split())


def _raw_text(error: ErrorObject) -> str:
    text = error.message or ""
    if isinstance(error.metadata, dict) and isinstance(raw := error.metadata.get("raw"), str) and raw not in text:
        text = f"{text} ({raw[:500]})"
    return text


def _key_hint(facts: RequestFacts) -> str:
    if facts.key_name:
        return f"the key came from {facts.key_name}: is it right, and may it use {facts.model!r}?"
    return "no key was sent: `cru login URL` keeps one for this base_url, or set CRU_API_KEY"


MOST_LINE_BYTES = 32 << 20
MOST_EVENT_BYTES = 256 << 20


def too_long(what: str, limit: int) -> BrokenReply:
    """The error for a part of a reply that is too long; asking again would bring the same."""
    hint = "does base_url name a model server that works?"
    return BrokenReply(f"the reply holds {what} of more than {limit >> 20} MiB", hint, retryable=False)


_FIRST_DELAY = 0.5
_LONGEST_DELAY = 8.0
_LONGEST_ASKED = 60.0


def is_retryable_status(status: int) -> bool:
    """Whether the same request may succeed later: 408, 409, 429 and every 5xx."""
    return status in (408, 409, 429) or status >= 500


def delay_asked_for(headers: Mapping[str, str], now: float) -> float | None:
    """The seconds that `Retry-After` (seconds or a date) asks for, at most 60; None if it does not. `now` is unix time."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        from email.utils import parsedate_to_datetime

        try:
            seconds = parsedate_to_datetime(value).timestamp() - now
        except ValueError:
            return None
    return min(max(seconds, 0.0), _LONGEST_ASKED) if seconds == seconds else None


def delay_before_retry(attempt: int, asked: float | None, jitter: float) -> float:
    """Seconds before the next try after `attempt` (0 = the first) failed. `jitter` in 0…1 takes up to half off, so that many
    clients do not come back together; what the server asked for is never shortened."""
    if asked is not None:
        return asked
    return min(_LONGEST_DELAY, _FIRST_DELAY * 2.0**attempt) * (1.0 - jitter / 2.0)
