"""Categories: what they stand for, what is wrong with them, and what a model costs by the settings."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.core.turn.support import World

from cru.core.base.config.layers import ConfigError, Layer, merge_layers
from cru.core.base.values.messages import Usage
from cru.core.compose import SETTINGS
from cru.core.events.bus import Bus
from cru.core.events.payloads import ModelSelected
from cru.core.events.stamp import Origin
from cru.core.events.stream import Notice
from cru.core.models import ModelSettings, price_of
from cru.core.models.categories import find_problems, models_of
from cru.core.models.protocol import NoModel
from cru.core.turn.model_pool import ModelPool


def settings_of(**values: Any) -> ModelSettings:
    return merge_layers(SETTINGS, [Layer("user", values, "config.toml")]).of(ModelSettings)


def test_a_category_is_its_models_in_order_and_those_of_categories_in_it() -> None:
    settings = settings_of(categories={"quick": ["a", "b"], "deep": ["c", "quick", "a", "d"]})
    assert models_of("deep", settings) == ("c", "a", "b", "d")
    assert models_of("nothing", settings) == ()


def test_categories_that_name_themselves_are_told_with_their_way_and_end() -> None:
    settings = settings_of(categories={"a": ["b", "x"], "b": ["c"], "c": ["a", "y"], "alone": ["alone"]})
    assert models_of("a", settings) == ("y", "x")
    assert models_of("alone", settings) == ()
    told = list(find_problems(settings, {"OPENROUTER_API_KEY": "k"}))
    assert "settings: categories.a names itself (a → b → c → a): that place is left out" in told
    assert "settings: categories.alone: there is no model in it" in told
    assert sum("names itself" in text for text in told) == 4


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"quick": []}, 'the category `quick` needs models: quick = ["PROVIDER:MODEL", …]'),
        ({"quick": ["a", " "]}, "the category `quick` needs models"),
        ({"quick": "a"}, "`categories.quick`: expected a list, got text"),
        ({"quick": [1]}, "expected text, got a whole number"),
    ],
)
def test_a_broken_table_is_an_error_with_its_place(table: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings_of(categories=table)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("member", "message"),
    [
        ("gemini:pro", "gemini:pro is left out: gemini: is not available yet"),
        ("opnai:gpt-5", "opnai:gpt-5 is left out: there is no provider `opnai` (did you mean openai:?)"),
        ("openai:", "no model is named after the colon"),
        ("depe", "there is no model and no category `depe`"),
    ],
)
def test_members_that_no_adapter_can_ask_are_told_at_load(member: str, message: str) -> None:
    settings = settings_of(categories={"quick": [member, "openai:gpt-5"], "deep": ["openai:gpt-5"]})
    [told] = find_problems(settings, {})
    assert message in told and told.startswith("settings: categories.quick: ")


def test_prices_of_the_settings() -> None:
    models = {
        "plain": {"input_price": 1, "output_price": 4},
        "cached": {"input_price": 1, "output_price": 4, "cache_read_price": 0.5, "cache_write_price": 2},
        "half": {"input_price": 1},
    }
    settings = settings_of(models=models)
    usage = Usage(input=1000, output=100, cache_read=600, cache_write=200)
    plain, cached, half = (price_of(settings.models[name]) for name in models)
    assert plain is not None and plain.cost(usage) == pytest.approx(0.0014)
    assert cached is not None and cached.cost(usage) == pytest.approx((200 + 300 + 400 + 400) / 1e6)
    assert half is None
    assert list(find_problems(settings, {})) == [
        "settings: models.half: `output_price` is missing, so what it costs is not known"
    ]


@pytest.mark.parametrize("value", [-1, "1", float("nan"), float("inf")])
def test_a_price_is_a_number_from_0(value: Any) -> None:
    with pytest.raises(ConfigError, match="input_price"):
        settings_of(models={"x": {"input_price": value}})


def pool(tmp_path: Path, **values: Any) -> tuple[ModelPool, list[Any]]:
    bus, heard = Bus(Origin("", "")), list[Any]()
    bus.stream.subscribe(lambda item: heard.append(item.payload), Notice, ModelSelected)
    return ModelPool(bus, settings_of(**values), {}, tmp_path), heard


def test_a_category_stands_wherever_a_model_may(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text("text: hi\n")
    one, two = (f"scripted:{tmp_path / name}" for name in ("one", "two"))
    models, heard = pool(
        tmp_path, model="quick", categories={"quick": ["gemini:x", "first", two]}, models={"first": {"model": one}}
    )
    resolved = asyncio.run(models.choose(""))
    assert (resolved.label, resolved.category, resolved.fallbacks) == (one, "quick", (two,))
    assert [n.text for n in heard if isinstance(n, Notice)] == [
        "category quick: left out is gemini:x (gemini: is not available yet)"
    ]
    assert models.why(resolved) == f"the category quick: gemini:x, first, {two}"
    assert asyncio.run(models.choose("quick")).label == one
    plain = asyncio.run(models.choose("first"))
    assert (plain.category, plain.fallbacks) == ("", ()) and plain.model is resolved.model
    with pytest.raises(NoModel) as caught:
        asyncio.run(models.choose("quik"))
    assert "did you mean the category `quick`?" in caught.value.hint


def test_a_category_without_a_usable_model_says_why_for_each(tmp_path: Path) -> None:
    models, _ = pool(tmp_path, categories={"quick": ["gemini:x", "scripted:/nowhere"]})
    with pytest.raises(NoModel) as caught:
        asyncio.run(models.choose("quick"))
    text = str(caught.value)
    assert "gemini:x (gemini: is not available yet)" in text and "no such file" in text and "[categories]" in text


def test_what_is_wrong_with_categories_is_told_when_a_session_is_built(tmp_path: Path) -> None:
    world = World(tmp_path, "text: hi\n", settings={"categories": {"quick": ["quick", "gemini:x"]}})
    told = " | ".join(world.notices())
    assert "names itself (quick → quick)" in told and "gemini: is not available yet" in told


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({}, ""), ({"model": "openai:gpt-5"}, "gpt-5"), ({"model": " gpt-5 "}, "gpt-5"), ({"model": "openai:"}, ""),
        ({"model": "fast", "models": {"fast": {"model": "anthropic:claude-x"}}}, "claude-x"),
        ({"model": "quick", "categories": {"quick": ["openai:gpt-5"]}}, ""),
    ],
)  # fmt: skip
def test_the_name_of_the_configured_model_is_known_before_it_is_asked(
    tmp_path: Path, values: dict[str, Any], name: str
) -> None:
    models, heard = pool(tmp_path, **values)
    assert models.configured_name() == name and heard == []
