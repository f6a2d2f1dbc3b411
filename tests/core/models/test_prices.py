"""What a request costs by the table of prices, and what is said when there is none."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from cru.core.base.values.messages import Usage
from cru.core.models import prices
from cru.core.models.prices import load_table, table_cost

MILLION = Usage(input=1_000_000, output=1_000_000)
SONNET = "claude-3-5-sonnet-20241022"
URL = "https://api.anthropic.com/v1"


@pytest.fixture(autouse=True)
def fresh_table() -> Iterator[None]:
    load_table.cache_clear()
    yield
    load_table.cache_clear()


def test_the_table_knows_what_known_models_cost() -> None:
    at = datetime(2025, 6, 1, tzinfo=UTC).timestamp()
    assert table_cost("anthropic", SONNET, URL, Usage(input=1_000_000), at) == 3.0
    assert table_cost("anthropic", SONNET, URL, MILLION, at) == 18.0
    assert table_cost("anthropic", SONNET, URL, Usage(input=1_000_000, cache_read=1_000_000), at) == 0.3
    assert table_cost("openrouter", "anthropic/claude-3.5-sonnet", "https://openrouter.ai/api/v1", MILLION, at)
    assert table_cost("openai_compatible", "deepseek-chat", "https://api.deepseek.com/v1", MILLION)


@pytest.mark.parametrize(
    ("provider", "model", "url", "usage"),
    [
        ("anthropic", "claude-nobody-knows", URL, MILLION),
        ("openai", "no such model", "https://api.openai.com/v1", MILLION),
        ("openai_compatible", "m", "https://nobody.example/v1", MILLION),
        ("anthropic", SONNET, URL, Usage(input=1, cache_read=5)),
    ],
)
def test_what_is_not_in_the_table_is_not_known(provider: str, model: str, url: str, usage: Usage) -> None:
    assert table_cost(provider, model, url, usage) in (None,)


@pytest.mark.parametrize(
    ("provider", "url", "cost"),
    [
        ("local", "/m.gguf", 0.0),
        ("scripted", "/s.txt", None),
        ("ollama", "http://127.0.0.1:11434/v1", None),
        ("openai_compatible", "http://127.0.0.1:9/v1", None),
        ("openai_compatible", "http://[::1]:9/v1", None),
    ],
)
def test_models_of_this_machine_need_no_table(
    provider: str, url: str, cost: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prices, "load_table", lambda: pytest.fail("the table was loaded"))
    assert table_cost(provider, "gpt-5", url, MILLION) == cost


def test_without_the_library_prices_are_not_known_and_the_way_to_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert table_cost("anthropic", SONNET, URL, MILLION) is None
    assert load_table() == (None, "no table of prices is installed: pip install 'cru[prices]'")


def test_a_broken_library_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def __getattr__(self, name: str) -> object:
            raise RuntimeError("bad table")

    monkeypatch.setitem(sys.modules, "genai_prices", Broken())
    assert table_cost("anthropic", SONNET, URL, MILLION) is None
    assert load_table()[1] == "the table of prices cannot be loaded: RuntimeError: bad table"
