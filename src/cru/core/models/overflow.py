"""Whether an error says that a request is larger than the model's context. Loaded when a server refuses a request.

Servers say it in many languages and fields. What they share are numbers beside words such as token or context. Codes and sentences
without a number are matched by their words."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

STATUSES = (0, 400, 413, 422, 500)
_MOST_CHARACTERS = 8_000
_SMALLEST, _LARGEST = 256, 20_000_000
"""Sizes of contexts, in tokens. Numbers outside of these mean something else: statuses, counts, times."""
_NEAR_WINDOW = 0.75
"""Share of the window from which on an error without any words counts as an overflow; sizes are estimates."""
_BYTES_PER_TOKEN = 4

_CODE = re.compile(
    r"(?:context|prompt|input)\w*_?(?:exceed|too_long|too_large|overflow)|exceed\w*_?(?:context|prompt)"
    r"|request_too_large|tokens_limit_reached|prompt_tokens_exceeded"
)
_OTHER_CAUSE = re.compile(
    r"\bper[ _-]?(?:sec|min|hour|day|week|month|user|key)|\btokens?/|\b[tr]p[mdh]\b|rate[ _-]?limit|quota|throttl|billing|credit|balance"
    r"|upgrade|subscription|(?:dai|hour|week|month)ly|please wait|try again later|slow down"
    r"|(?:string|array|list) (?:is )?too (?:long|short)|string_above|array_above|at most \d+ characters"
    r"|expired|jwt|bearer|authenti|authori[sz]|api[ _-]?key|access[ _-]token|signature|csrf|logit_bias|vocab|token[ _-]?ids?\b"
    r"|unexpected (?:token|end)|\bcolumn\b|header"
)
"""A limit of another kind: of time, money, a field or access; or JSON that cannot be read."""
_FIELD_WORDS = re.compile(
    r"input validation error|(?:invalid|unable to parse) input|inputs? should|value should|input_schema"
)
"""Words of validators in which `input` is not the prompt."""
_TOOLS = re.compile(
    r"\btools?[.\[]|\btools?\W{0,2} (?:schema|description|definition|name|param)|\bfunction\W? ?(?:name|descr|schema|param)"
)
_MEDIA = re.compile(r"\b(?:image|file|audio|video|pdf|document|attachment)s?\b")
_OUTPUT = re.compile(
    r"\b(?:max|min|budget)_?(?:\w+_)?tokens\b|\b(?:output|completion|generated|new|thinking|reasoning)[ _](?:length|tokens?)\b"
)
"""Parameters that limit the reply: too large a value is no overflow unless the size of the prompt is mentioned, too."""
_PROMPT = re.compile(
    r"prompt|\binputs?\b|input_|message|conversation|\bsequence|提示|プロンプト|프롬프트|промпт|輸入|输入|入力|입력"
    r"|eingabe|entrada"
)
_CONTEXT = re.compile(r"conte[xs]|kontek?[xs]t|n_ctx|контекст|上下文|コンテ[キク]スト|文脈|컨텍스트|문맥")
_TOKEN = re.compile(r"token|jeton|żeton|токен|トークン|토큰|令牌|词元")
_EXCESS = (
    r"exceed|overflow|too (?:long|large|big|many)|not enough|(?:larg|long|great|high)er than|more than|überschr|zu (?:lang|groß)"
    r"|dépass|trop (?:long|grand)|exced|demasiado|supera|troppo|превы|слишком|超|过长|过大|太长|太大|長すぎ|초과"
)
_BOUND = re.compile(
    rf"{_EXCESS}|maxim|\bmax|limit|at most|(?:less|fewer) than|up to|\bonly\b|range|最大|上限|制限|최대|제한|макс|[<>≤≥]"
)
_SIZED = r"prompt|inputs?\b|context|conversation|messages?\b|request (?:body|entity|payload)|上下文|输入|提示|消息"
_SENTENCE = re.compile(
    rf"(?:{_SIZED})[\w ]{{0,40}}(?:{_EXCESS})|(?:{_EXCESS})[\w ]{{0,40}}(?:context|prompt)"
    r"|reduce (?:the (?:length|size) of )?(?:the|your) (?:messages|prompt|input|context|conversation)"
    r"|maximum context|token limit|too many tokens"
)
"""What says it without a number."""
_NUMBER = re.compile(r"(?<![\w.])\d{1,3}(?:[,.'’_\u00a0\u202f ]\d{3})+(?![\w])|(?<![\w.])\d+k?(?![A-Za-z_])(?!\.\d)")


def is_overflow(status: int, code: str, text: str) -> bool:
    """Return whether an error of this HTTP status (0: inside a stream), code and unabridged text says that the request is too long."""
    if status not in STATUSES:
        return False
    text = text[:_MOST_CHARACTERS].lower()
    code = code.lower()
    if status == 413 or _CODE.search(code) or _CODE.search(text):
        return True
    if _OTHER_CAUSE.search(text) or _OTHER_CAUSE.search(code):
        return False
    return _describes_overflow(_FIELD_WORDS.sub(" ", text))


def _describes_overflow(text: str) -> bool:
    has_prompt, has_context = bool(_PROMPT.search(text)), bool(_CONTEXT.search(text))
    has_token = bool(_TOKEN.search(text))
    if _OUTPUT.search(text) and not (has_prompt or _is_sum(text)):
        return False
    if _TOOLS.search(text) and not (has_context or "in the messages" in text):
        return False
    if _MEDIA.search(text) and not has_token:
        return False
    sizes = set(_read_sizes(text))
    if len(sizes) > 1 and (has_token or has_context):
        return True
    if sizes and (has_context or has_prompt) and _BOUND.search(text) is not None:
        return has_context or has_token or _SENTENCE.search(text) is not None or "length" in text
    return _SENTENCE.search(text) is not None


def _is_sum(text: str) -> bool:
    """Whether the sizes of the request are given beside a limit of the reply: three different ones, as in `8000 + 2000 > 8192`."""
    return len(set(_read_sizes(text))) > 2


def _read_sizes(text: str) -> Iterator[int]:
    for match in _NUMBER.finditer(text):
        digits = "".join(char for char in match[0] if char.isdigit())
        size = int(digits[:12]) * (1024 if match[0].endswith("k") else 1)
        if _SMALLEST <= size <= _LARGEST:
            yield size


def is_silent_overflow(status: int, size: int, window: int) -> bool:
    """Return whether a refusal without any text means an overflow: the request, in bytes, comes near to the window, in tokens."""
    return status == 400 and bool(window) and size >= window * _BYTES_PER_TOKEN * _NEAR_WINDOW


def flatten(body: bytes) -> str:
    """Return all names and values of a JSON body as text, but for what a validator repeats of the request; else the body itself."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return body[:_MOST_CHARACTERS].decode("utf-8", "replace")
    parts: list[str] = []
    _collect("", value, parts, 0)
    return "\n".join(parts)[:_MOST_CHARACTERS]


def _collect(name: str, value: object, parts: list[str], depth: int) -> None:
    if depth > 8 or len(parts) > 200:
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            if not (key in ("input", "body", "request") and depth and isinstance(inner, str | dict | list)):
                _collect(key, inner, parts, depth + 1)
    elif isinstance(value, list):
        if name == "loc":
            parts.append(".".join(map(str, value[:8])))
        else:
            for inner in value:
                _collect(name, inner, parts, depth + 1)
    elif isinstance(value, str):
        parts.append(f"{name}: {value[:2_000]}")
    elif isinstance(value, int) and not isinstance(value, bool) and _is_size(name):
        parts.append(f"{name}: {value}")


def _is_size(name: str) -> bool:
    return re.search(r"token|ctx|context|length|len\b|limit|max|size", name.lower()) is not None
