"""Numbers in settings are finite and in range, whichever layer they come from; the error names the range."""

from __future__ import annotations

import pytest
from tests.kit import HomeDir, cru

from cru.core.base.config.layers import ConfigError, Layer, merge_layers
from cru.core.compose.start import API_TABLES, SETTINGS

WRONG = [
    ("lock_heartbeat_seconds=0", "from 1 to 3600, got 0"),
    ("lock_heartbeat_seconds=-5", "from 1 to 3600, got -5"),
    ("lock_heartbeat_seconds=100000000000000000000", "from 1 to 3600, got 100000000000000000000"),
    ("auto_compact_threshold=nan", "from 0 to 100, got nan"),
    ("auto_compact_threshold=inf", "from 0 to 100, got inf"),
    ("warn_threshold_percent=-1", "from 0 to 100, got -1.0"),
    ("rolling_compact_drop_percentage=100.5", "from 0 to 100, got 100.5"),
    ("fuel=-1", "of 0 or more, got -1"),
    ("bash_timeout=inf", "from 0 to 604800, got inf"),
    ("api.temperature=nan", "of 0 or more, got nan"),
    ("api.presence_penalty=inf", "a finite number, got inf"),
    ("api.top_p=2", "from 0 to 1, got 2.0"),
    ("models.x.context_window=-1", "of 0 or more, got -1"),
    ("models.x.api.temperature=-1", "of 0 or more, got -1.0"),
    ("models.x={api={temperature=nan}}", "of 0 or more, got nan"),
]


@pytest.mark.parametrize(("setting", "told"), WRONG)
def test_a_number_out_of_range_is_an_error_that_names_the_range(home: HomeDir, setting: str, told: str) -> None:
    run = cru("-s", setting, "-n", "model", home=home)
    assert run.code == 2 and told in run.err and run.err.count("\n") <= 2


@pytest.mark.parametrize("value", ["nan", "inf", "-1.0", "101"])
def test_the_same_holds_for_files_and_variables(home: HomeDir, value: str) -> None:
    by_variable = cru("-n", "model", home=home, env={"CRU_AUTO_COMPACT_THRESHOLD": value})
    home.configure(f"auto_compact_threshold = {value}\n")
    by_file = cru("-n", "model", home=home)
    assert "config.toml:" in by_file.err and "CRU_AUTO_COMPACT_THRESHOLD" in by_variable.err
    for run in (by_file, by_variable):
        assert run.code == 1 and f"expected a number from 0 to 100, got {value}" in run.err


def test_the_ends_of_a_range_are_in_it() -> None:
    data = {"auto_compact_threshold": 100, "warn_threshold_percent": 0, "lock_heartbeat_seconds": 3600, "fuel": 0}
    merge_layers(SETTINGS, [Layer("user", data)], tables=API_TABLES)
    with pytest.raises(ConfigError, match="from 1 to 3600"):
        merge_layers(SETTINGS, [Layer("user", {"lock_heartbeat_seconds": 3601})], tables=API_TABLES)


def test_every_range_is_one_of_a_setting() -> None:
    keys = {key.partition(".")[0] for struct in SETTINGS for key in struct.__struct_encode_fields__}
    for struct in SETTINGS:
        assert {key.partition(".")[0] for key in getattr(struct, "RANGES", {})} <= keys
