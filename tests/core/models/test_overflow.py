"""Errors by which servers say that a request is larger than the model's context, and errors that only look like one."""

import json
from typing import Any

import pytest

from cru.core.models.failures import ErrorObject, RequestFacts, error_for_object, error_for_status
from cru.core.models.overflow import flatten, is_overflow
from cru.core.models.protocol import ContextTooLong, ModelRefused

FACTS = RequestFacts("p", "m")

TOO_LONG: list[tuple[int, Any]] = [
    (400, "This model's maximum context length is 8192 tokens. However, you requested 10000 tokens (8000 in the messages, 500 in the "
     "functions, 1500 in the completion). Please reduce the length of the messages, functions, or completion."),
    (400, {"message": "too big", "code": "context_length_exceeded"}),
    (400, "Your input exceeds the context window of this model. Please adjust your input and try again."),
    (400, "prompt is too long: 210000 tokens > 200000 maximum"),
    (400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` "
     "and try again"),
    (413, {"type": "request_too_large", "message": "Request exceeds the maximum size"}),
    (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
    (400, "Unable to submit request because the input token count is 40000 but model only supports up to 32767. Reduce the input token "
     "count and try again."),
    (400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."),
    (400, "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292. Try using a shorter prompt"),
    (400, "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length"),
    (400, "The prompt is too long: 10000, model maximum context length: 8192"),
    (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 8000 `inputs` tokens and 1000 "
     "`max_new_tokens`"),
    (422, "Input validation error: `inputs` must have less than 1024 tokens. Given: 1500"),
    (400, {"code": "tokens_limit_reached", "message": "Request body too large for gpt-4o model. Max size: 8000 tokens."}),
    (413, {"message": "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 10000"}),
    (400, "Please reduce the length of the messages or completion."),
    (400, "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 "
     "tokens, which is not enough."),
    (500, "input length exceeds maximum context length"),
    (400, "prompt too long; exceeded max context length by 4 tokens"),
    (400, "Requested tokens (4100) exceed context window of 4096"),
    (400, {"code": 400, "message": "request refused", "type": "invalid", "n_prompt_tokens": 9000, "n_ctx": 4096}),
    (400, "The engine prompt length 9000 exceeds the max_model_len 8192. Please reduce prompt."),
    (400, "The decoder prompt (length 9000) is longer than the maximum model length of 8192."),
    (400, "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 8192 tokens and your request "
     "has 5000 input tokens (4096 > 8192 - 5000)."),
    (400, "The input (9000 tokens) is longer than the model's context length (8192 tokens)."),
    (400, "Prompt length 9000 is greater than max_seq_len 8192"),
    (500, "Prompt length (9000) exceeds maximum input length (8192). Set log level to info and check TRTGptModel logs"),
    (400, "Invalid request: Your request exceeded model token limit: 8192"),
    (400, "Input is too long for requested model."),
    (400, {"code": "1261", "message": "Prompt 超长"}),
    (400, "invalid params, context window exceeds limit"),
    (400, "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]"),
    (400, "length of prompt_tokens (5000) must be less than max_seq_len (4096)."),
    (400, {"code": "model_max_prompt_tokens_exceeded", "message": "prompt token count of 70000 exceeds the limit of 64000"}),
    (400, "litellm.ContextWindowExceededError: see the server's log"),
    (400, "The maximum context length of X is 4096. However, answering your request will take 5000 tokens. Please reduce the length of the "
     "messages or the specified max_completion_tokens value."),
    (400, "Die maximale Kontextlänge beträgt 8.192 Token, die Anfrage hat 9.120."),
    (400, "La longueur du contexte (9 120 jetons) dépasse le maximum de 8 192."),
    (400, "La solicitud tiene 9120 tokens y el contexto máximo es 8192"),
    (400, "入力トークン数 9120 が上限 8192 を超えています"),
    (400, "입력 토큰 9120개가 최대 컨텍스트 길이 8192를 초과했습니다"),
    (400, "Превышена максимальная длина контекста: 9120 > 8192 токенов"),
    (400, "输入长度 9120 超过模型最大上下文长度 8192"),
    (400, "İstek 9120 token içeriyor, sınır 8192 token"),
    (400, "request has 9,120 tokens, limit 8k"),
]  # fmt: skip

OTHERWISE: list[tuple[int, Any]] = [
    (429, "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 35000. The input or output tokens must be reduced"),
    (400, "Rate limit reached: 35000 tokens of 30000 tokens per minute"),
    (400, "You exceeded 200000 tokens/day; 250000 were requested"),
    (400, "You have exceeded your daily token limit of 100000; used 120000"),
    (400, "You exceeded your current quota: 1000000 tokens, used 1000512. Check your plan and billing details."),
    (400, "This request requires more credits: you requested up to 65536 tokens, but can only afford 4000"),
    (0, "Too many tokens, please wait before trying again."),
    (400, "max_tokens is too large: must be <= 4096"),
    (400, "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000."),
    (400, "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-haiku"),
    (400, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"),
    (400, "`max_tokens` must be less than or equal to `32768`, the maximum value for `max_tokens` is less than the `context_window` for "
     "this model"),
    (422, "Input validation error: `max_new_tokens` must be <= 4096. Given: 5000"),
    (400, "max_tokens=9000 cannot be greater than max_model_len=8192"),
    (400, "`max_tokens` (4096) must be greater than `thinking.budget_tokens` (8000)"),
    (400, "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"),
    (422, {"detail": [{"loc": ["body", "max_tokens"], "msg": "Input should be less than or equal to 4096", "input": 9000}]}),
    (422, {"detail": [{"loc": ["body", "seed"], "msg": "Input should be a valid integer", "input": "maximum context length 8192 tokens"}]}),
    (422, {"detail": [{"loc": ["body"], "msg": "Field required", "input": {"messages": "prompt is too long: 9000 tokens > 8192"}}]}),
    (400, "Invalid 'tools[3].function.description': string too long. Expected a string with maximum length 1024, but got 2000 instead."),
    (400, "tools.0.custom.input_schema: the schema has 9000 tokens, maximum 4096"),
    (400, "The tool schema is too long: 70000 bytes, limit 65536 tokens"),
    (400, "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got 43."),
    (400, "Invalid 'tools': array too long. Expected an array with maximum length 128, but got 300."),
    (400, "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes"),
    (400, "At least one of the image dimensions exceed max allowed size: 8000 pixels"),
    (400, "Invalid value for temperature: expected a number <= 2, got 400"),
    (400, "Unsupported parameter: 'context_management' is not supported with this model."),
    (400, "Unrecognized request argument supplied: context_window"),
    (400, "Invalid key in 'logit_bias': token id 200000. Maximum value is 100257"),
    (400, "JWT token expired at 1700300, now 1700900"),
    (400, "Unexpected token < in JSON at position 4096, line 1200 column 512"),
    (400, "Invalid token: the length of the API key must be 512, got 300"),
    (400, "Request Header Or Cookie Too Large: limit 8192"),
    (400, "The request's top_logprobs exceed the maximum of 20 for this model"),
    (400, "stop: too many stop sequences, at most 4"),
    (400, "no such parameter"),
    (404, "The model with maximum context length 8192 was not found"),
    (401, "prompt is too long"),
    (400, "messages: first message must use the user role"),
]  # fmt: skip


def body(error: Any) -> bytes:
    whole = error if isinstance(error, dict) and "detail" in error else {"error": error}
    return json.dumps(whole).encode()


@pytest.mark.parametrize(("status", "error"), TOO_LONG)
def test_a_request_that_is_too_long_is_recognised(status: int, error: Any) -> None:
    assert type(error_for_status(FACTS, status, body(error))) is ContextTooLong


@pytest.mark.parametrize(("status", "error"), OTHERWISE)
def test_an_error_of_another_kind_is_no_overflow(status: int, error: Any) -> None:
    assert type(error_for_status(FACTS, status, body(error))) is not ContextTooLong


@pytest.mark.parametrize("key", ["x", "ok", "token", "context", "a-long-key-in-the-text"])
def test_a_key_in_the_text_hides_no_overflow(key: str) -> None:
    text = f"maximum context length is 8192 tokens, you sent 9000 with {key}"
    error = error_for_status(RequestFacts("p", "m", key=key), 400, body(text))
    assert type(error) is ContextTooLong and f"with {key}" not in error.message


def test_a_short_key_is_hidden_as_a_word_only() -> None:
    facts = RequestFacts("p", "m", key="x", hidden=("max", "long-secret"))
    assert facts.without_keys("x, 'x' max=maximum context (max) text-x long-secrets") == (
        "***, '***' ***=maximum context (***) text-*** ***s"
    )


@pytest.mark.parametrize(
    ("status", "text", "size", "window", "is_too_long"),
    [
        (400, b"", 4 * 7000, 8192, True),
        (400, b"{}", 4 * 7000, 8192, True),
        (400, b" \n", 4 * 90_000, 8192, True),
        (400, b"", 4 * 1000, 8192, False),
        (400, b"", 4 * 7000, 0, False),
        (400, b'{"error": "no such model"}', 4 * 7000, 8192, False),
        (422, b"", 4 * 7000, 8192, False),
    ],
)
def test_an_error_without_words_counts_near_the_window(
    status: int, text: bytes, size: int, window: int, is_too_long: bool
) -> None:
    error = error_for_status(RequestFacts("p", "m", window=window), status, text, size)
    assert type(error) is (ContextTooLong if is_too_long else ModelRefused)


@pytest.mark.parametrize("code", [20015, 336103, "context_length_exceeded", 400])
def test_an_overflow_inside_a_stream_is_recognised_whatever_its_code(code: int | str) -> None:
    error = error_for_object(FACTS, ErrorObject("prompt length 9000 exceeds 8192 tokens", code))
    assert type(error) is ContextTooLong


def test_a_long_text_is_searched_in_part_only() -> None:
    assert not is_overflow(400, "", flatten(json.dumps({"a": "prompt 9" * 100_000}).encode()))
