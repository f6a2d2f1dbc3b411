"""The table of all settings that the documentation shows."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, Struct
from tests.kit.settings_table import markdown

from cru.core.base.config.layers import ConfigError


class Alias(Struct, frozen=True):
    context_window: int | None = None


class Sample(Struct, frozen=True):
    model: str = ""
    level: Literal["low", "high"] = "low"
    lock_heartbeat_seconds: int = 30
    share: Annotated[float, Meta(ge=0)] = 0.5
    stop: tuple[str, ...] = ()
    api: dict[str, Any] = {}
    models: dict[str, Alias] = {}


DOCS = {key: f"what {key} does" for key in Sample.__struct_fields__} | {
    "lock_heartbeat_seconds": "beats",
    "models.NAME.context_window": "tokens | size",
}


def test_each_key_has_a_row() -> None:
    head, _, *rows = markdown([Sample], DOCS).splitlines()
    assert head == "| key | type | default | what it does | in local.toml | environment |"
    assert rows == [
        '| `model` | text | `""` | what model does | yes | `CRU_MODEL` |',
        '| `level` | `low` or `high` | `"low"` | what level does | yes | `CRU_LEVEL` |',
        "| `lock_heartbeat_seconds` | whole number | `30` | beats | no | `CRU_LOCK_HEARTBEAT_SECONDS` |",
        "| `share` | number | `0.5` | what share does | yes | `CRU_SHARE` |",
        "| `stop` | list of text | – | what stop does | yes |  |",
        "| `api` | table | – | what api does | yes |  |",
        "| `models` | table of tables | – | what models does | yes |  |",
        "| `models.NAME.context_window` | whole number | – | tokens \\| size | yes |  |",
    ]


@pytest.mark.parametrize("key", ["share", "models.NAME.context_window"])
def test_a_key_without_a_line_and_a_line_without_a_key_are_errors(key: str) -> None:
    docs = {**DOCS, "old": "gone"}
    del docs[key]
    with pytest.raises(ConfigError) as caught:
        markdown([Sample], docs)
    assert f"`{key}` has no line in DOCS of {__name__}" in caught.value.message
    assert "DOCS has a line for `old`, which is no setting" in caught.value.message
