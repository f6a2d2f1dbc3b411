"""Lists of models: what each provider is asked with, what is read of its answer, and what is told when there is none."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from tests.core.models.harness import KEY
from tests.core.models.wire import Seen, Step, serve, status, stream, whole

from cru.core.base.net.transport import Transport
from cru.core.models import ModelPrice
from cru.core.models.listing import KeyRefused, ListedModel, ListUnavailable, list_models
from cru.core.models.providers import OPENROUTER, PROVIDERS


def listed(
    *steps: Step, provider: str = "openai_compatible", key: str = KEY, seconds: float = 10.0
) -> tuple[Any, list[Seen]]:
    """The list, or the error, and the requests."""

    async def main() -> tuple[Any, list[Seen]]:
        async with serve(*steps) as wire:
            transport = Transport()
            PROVIDERS[OPENROUTER] = replace(PROVIDERS[OPENROUTER], base_url=wire.url)
            try:
                return await list_models(transport, provider, wire.url, key, seconds=seconds), wire.requests
            except ListUnavailable as error:
                return error, wire.requests
            finally:
                await transport.close()

    row = PROVIDERS[OPENROUTER]
    try:
        return asyncio.run(main())
    finally:
        PROVIDERS[OPENROUTER] = row


def test_each_provider_gets_its_key_in_its_own_way() -> None:
    _, [request] = listed(whole({"data": []}))
    assert request.line.startswith("GET /v1/models ") and request.headers["authorization"] == f"Bearer {KEY}"
    _, [request] = listed(whole({"data": []}), provider="anthropic")
    assert request.line.startswith("GET /v1/models?limit=1000 ") and request.headers["x-api-key"] == KEY
    assert "anthropic-version" in request.headers and "authorization" not in request.headers
    _, [request] = listed(whole({"data": []}), key="")
    assert "authorization" not in request.headers


def test_openrouter_lists_for_everybody_so_its_key_is_looked_at_by_itself() -> None:
    error, requests = listed(
        whole({"data": [{"id": "a/b"}]}), status(401, '{"error": {"message": "no"}}'), provider=OPENROUTER
    )
    assert isinstance(error, KeyRefused) and [seen.line.split()[1] for seen in requests] == ["/v1/models", "/v1/key"]
    models, _ = listed(whole({"data": [{"id": "a/b"}]}), whole({"data": {}}), provider=OPENROUTER)
    assert [model.id for model in models] == ["a/b"]


ROWS: list[tuple[Any, ListedModel | None]] = [
    ({"id": "m", "display_name": "The M", "max_input_tokens": 7}, ListedModel("m", "The M", 7)),
    ({"id": "m", "meta": {"n_ctx_train": 4096}}, ListedModel("m", "", 4096)),
    ({"id": "m", "meta": {"n_ctx": 2048, "n_ctx_train": 4096}}, ListedModel("m", "", 2048)),
    ({"id": "m", "context_length": "many", "created": "now"}, ListedModel("m")),
    (
        {"id": "m", "pricing": {"prompt": "0.000001", "completion": "0.000002", "input_cache_read": "0.0000001"}},
        ListedModel("m", price=ModelPrice(1.0, 2.0, 0.1, 1.0)),
    ),
    ({"id": "m", "pricing": {"prompt": "-1", "completion": "-1"}}, ListedModel("m")),
    ({"id": "m", "name": "a\x1b[2Jb"}, ListedModel("m", "a\\x1b[2Jb")),
    ({"id": "text-embedding-3"}, None),
    ({"id": "a\x1b[2Jb"}, None),
    ({"id": "a\nb"}, None),
    ({"id": ""}, None),
    ({"id": 1}, None),
    ("m", None),
]


@pytest.mark.parametrize(("row", "model"), ROWS)
def test_what_is_read_of_a_row(row: Any, model: ListedModel | None) -> None:
    models, _ = listed(whole({"data": [row]}))
    assert [round_price(each) for each in models] == ([] if model is None else [model])


def round_price(model: ListedModel) -> ListedModel:
    price = model.price
    if price is None:
        return model
    numbers = (price.input, price.output, price.cache_read, price.cache_write)
    return replace(model, price=ModelPrice(*(round(number, 6) for number in numbers)))


def test_openai_lists_without_order_so_the_newest_come_first() -> None:
    models, _ = listed(whole({"data": [{"id": "old", "created": 1}, {"id": "new", "created": 2}]}), provider="openai")
    assert [model.id for model in models] == ["new", "old"]


@pytest.mark.parametrize(
    ("step", "kind", "text"),
    [
        (
            status(401, '{"error": {"message": "bad key ' + KEY + '"}}'),
            KeyRefused,
            r"does not accept the key \(401: bad key \*\*\*\)",
        ),
        (status(403), KeyRefused, r"does not accept the key \(403\)"),
        (
            status(400, '{"error":{"message":"No connected db.","type":"no_db_connection","param":null,"code":"400"}}'),
            KeyRefused,
            r"does not accept the key \(400: No connected db\.\)",
        ),
        (status(400, '{"error": {"message": "no such parameter"}}'), ListUnavailable, "answered 400"),
        (status(404, "nothing here"), ListUnavailable, "answered 404"),
        (status(500, '{"error": "\\u001b[31mtired"}'), ListUnavailable, r"answered 500: \[31mtired"),
        (whole("<html>"), ListUnavailable, "its answer is no JSON"),
        (whole("[" * 100_000), ListUnavailable, "its answer is no JSON"),
        (whole({"models": []}), ListUnavailable, "gives no list of models"),
        (whole([1, 2]), ListUnavailable, "gives no list of models"),
    ],
)
def test_what_is_no_list_is_told_without_the_key(step: Step, kind: type[ListUnavailable], text: str) -> None:
    error, _ = listed(step)
    assert type(error) is kind and KEY not in str(error) and "\x1b" not in str(error)
    with pytest.raises(kind, match=text):
        raise error


def test_a_server_that_does_not_go_on_is_not_waited_for() -> None:
    error, _ = listed(stream(b"{", b" ", b" ", pause=5.0), seconds=0.2)
    assert isinstance(error, ListUnavailable) and "does not answer" in error.message and "0.2 s" in error.message


@pytest.mark.parametrize(
    "row",
    [
        {"created": 10**400}, {"created": True}, {"context_length": True}, {"context_length": 2**70}, {"context_length": 10**400},
        {"max_model_len": -1}, {"meta": {"n_ctx_train": 2**63}}, {"context_length": "8"}, {"pricing": {"prompt": 10**400, "completion": 1}},
        {"pricing": {"prompt": "1", "completion": "nan"}}, {"pricing": {"prompt": "inf", "completion": "1e999"}},
        {"pricing": {"prompt": "1", "completion": "1", "input_cache_read": "nan"}}, {"pricing": {"prompt": [], "completion": {}}},
    ],
)  # fmt: skip
def test_numbers_that_cannot_be_are_left_out(row: dict[str, Any]) -> None:
    models, _ = listed(whole({"data": [{"id": "m", **row}]}))
    if isinstance(models, ListUnavailable):  # too large for any reader of JSON: there is no list
        assert "no JSON" in models.message
    else:
        assert [(m.context_window, m.price) for m in models] == [(None, None)] and 0 <= models[0].created <= 1
