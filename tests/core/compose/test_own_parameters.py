"""Parameters of requests by where they are set: config.toml, a model's alias, a conversation's local.toml, the command line."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.core.compose.test_app import start_in, write

from cru.core.compose import load_settings
from cru.core.models import ModelSettings
from cru.core.models.registry import choose_model

ALIAS = '[models.fast]\nmodel = "openai:gpt-5"\n[models.fast.api]\n'
REASONING = ALIAS + 'temperature = 0.9\nreasoning = {effort = "high", exclude = true}\n'


@pytest.mark.parametrize(
    ("config", "local", "line", "parameters"),
    [
        (f"[api]\ntemperature = 0.1\ntop_p = 0.5\n{ALIAS}temperature = 0.9\n", "", {}, {"temperature": 0.9, "top_p": 0.5}),
        (f"{ALIAS}temperature = 0.9\n", "", {"temperature": "0.2"}, {"temperature": 0.2}),
        (f"{ALIAS}temperature = 0.9\n", "[api]\ntemperature = 0.3\n", {}, {"temperature": 0.3}),
        (f"{ALIAS}temperature = 0.9\n", "[api]\ntemperature = 0.3\n", {"temperature": "0.2"}, {"temperature": 0.2}),
        (f"{ALIAS}temperature = 0.9\n", "[api]\ntop_p = 0.3\n", {}, {"temperature": 0.9, "top_p": 0.3}),
        ("", f"[api]\ntemperature = 0.3\n{ALIAS}temperature = 0.9\n", {}, {"temperature": 0.9}),
        ("", f"{ALIAS}temperature = 0.9\n", {"temperature": "0.2"}, {"temperature": 0.2}),
        (REASONING, "[api]\nreasoning = {effort = 'low'}\n", {}, {"temperature": 0.9, "reasoning": {"effort": "low", "exclude": True}}),
        (
            REASONING, "", {"reasoning": {"max_tokens": "500"}},
            {"temperature": 0.9, "reasoning": {"max_tokens": 500, "exclude": True}},
        ),
    ],
)  # fmt: skip
def test_what_a_conversation_or_a_command_line_sets_wins_over_an_alias(
    tmp_path: Path, config: str, local: str, line: dict[str, Any], parameters: dict[str, object]
) -> None:
    start = start_in(tmp_path)
    write(start.home / "config.toml", config)
    write(start.home / "contexts" / start.context / "local.toml", local)
    settings, _, _ = load_settings(replace(start, overrides={"model": "fast", **({"api": line} if line else {})}))
    problems: list[str] = []
    chosen = settings.of(ModelSettings)
    choice = asyncio.run(choose_model(chosen, {"OPENAI_API_KEY": "k"}, tmp_path, problems.append, servers=()))
    assert choice.parameters == parameters and problems == []
