"""Layers: files, environment, order, positions in errors, and what an untrusted project may say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec import Struct
from msgspec.structs import FieldInfo, fields

from cru.core.base.config import check
from cru.core.base.config.ignored import restrict_untrusted
from cru.core.base.config.layers import ConfigError, Layer, Settings, environment_layer, merge_layers, read_layer
from cru.core.guard.rules import PermissionSettings, RuleLists


class Alias(Struct, frozen=True):
    model: str = ""
    context_window: int | None = None
    api: dict[str, Any] = {}


class Sample(Struct, frozen=True):
    """The keys of chibi 5.1 and one of every type."""

    api_key: str = ""
    model: str = ""
    base_url: str = ""
    context_window_limit: int = 0
    warn_threshold_percent: float = 80.0
    auto_compact: bool = False
    auto_compact_threshold: float = 80.0
    rolling_compact_drop_percentage: float = 50.0
    reflection_enabled: bool = True
    reflection_character_limit: int = 10000
    max_recursion_depth: int = 15
    username: str = "user"
    lock_heartbeat_seconds: int = 30
    effort: Literal["low", "high"] = "low"
    api: dict[str, Any] = {}
    models: dict[str, Alias] = {}


STRUCTS = (Sample, PermissionSettings)
API: dict[str, Any] = {"temperature": float, "stop": list[str], "reasoning.effort": str, "reasoning.max_tokens": int}
TABLES = {"api": API, "models.*.api": API}

# key -> the values of the five layers, weakest first, as written in TOML
KEYS: dict[str, tuple[str, ...]] = {
    "api_key": ('"a"', '"b"', '"c"', '"d"', '"e"'),
    "model": ('"a"', '"b"', '"c"', '"d"', '"e"'),
    "base_url": ('"a"', '"b"', '"c"', '"d"', '"e"'),
    "context_window_limit": ("1", "2", "3", "4", "5"),
    "warn_threshold_percent": ("1.5", "2.5", "3", "4.5", "5.5"),
    "auto_compact": ("true", "false", "true", "false", "true"),
    "auto_compact_threshold": ("1.5", "2.5", "3.5", "4.5", "5.5"),
    "rolling_compact_drop_percentage": ("1.5", "2.5", "3.5", "4.5", "5.5"),
    "reflection_enabled": ("false", "true", "false", "true", "false"),
    "reflection_character_limit": ("1", "2", "3", "4", "5"),
    "max_recursion_depth": ("1", "2", "3", "4", "5"),
    "username": ('"a"', '"b"', '"c"', '"d"', '"e"'),
    "effort": ('"low"', '"high"', '"low"', '"high"', '"low"'),
}


def write(tmp_path: Path, name: str, text: str) -> Layer:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    layer = read_layer({"config.toml": "user", "local.toml": "context"}.get(name, "project"), path)
    assert layer is not None
    return layer


def settings(*layers: Layer) -> Settings:
    return merge_layers(STRUCTS, layers, tables=TABLES)


def failure(*layers: Layer) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        settings(*layers)
    return caught.value


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("strongest", range(1, 6))
def test_a_stronger_layer_wins_for_every_key(tmp_path: Path, key: str, strongest: int) -> None:
    texts = [f"{key} = {value}\n" for value in KEYS[key]]
    word = KEYS[key][4].strip('"')
    layers = [
        write(tmp_path, "config.toml", "\n" + texts[0]),
        environment_layer({f"CRU_{key.upper()}": KEYS[key][1].strip('"')}),
        write(tmp_path, ".cru/config.toml", texts[2]),
        write(tmp_path, "local.toml", texts[3]),
        Layer("command line", {key: word}),
    ][:strongest]
    merged = settings(*layers)
    wanted = merge_layers(STRUCTS, [Layer("user", _loads(texts[strongest - 1]))]).of(Sample)
    assert getattr(merged.of(Sample), key) == getattr(wanted, key)
    origin = [
        f"{tmp_path}/config.toml:2",
        f"environment CRU_{key.upper()}",
        f"{tmp_path}/.cru/config.toml:1",
        f"{tmp_path}/local.toml:1",
        "command line",
    ]
    assert merged.origin(key) == origin[strongest - 1]


def _loads(text: str) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(text)


def test_without_any_layer_everything_has_its_default() -> None:
    merged = settings()
    assert merged.of(Sample) == Sample()
    assert merged.of(PermissionSettings).mode == "ask"
    assert merged.origin("model") == "default"
    assert merged.problems == ()


def test_a_missing_file_is_no_layer_and_an_empty_one_says_nothing(tmp_path: Path) -> None:
    assert read_layer("user", tmp_path / "none.toml") is None
    assert read_layer("user", tmp_path / "file.toml" / "below") is None
    assert settings(write(tmp_path, "config.toml", "")).of(Sample) == Sample()


def test_tables_merge_key_by_key_and_lists_replace(tmp_path: Path) -> None:
    user = '[api]\ntemperature = 1\nstop = ["a", "b"]\nreasoning = {effort = "low"}\n[models.x]\nmodel = "m"\n'
    local = '[api]\nstop = ["c"]\nreasoning.max_tokens = 5\n[models.x]\ncontext_window = 9\n[models."y.z"]\n'
    merged = settings(write(tmp_path, "config.toml", user), write(tmp_path, "local.toml", local))
    sample = merged.of(Sample)
    assert sample.api == {"temperature": 1.0, "stop": ["c"], "reasoning": {"effort": "low", "max_tokens": 5}}
    assert sample.models == {"x": Alias("m", 9), "y.z": Alias()}
    assert merged.origin("api.temperature") == f"{tmp_path}/config.toml:2"
    assert merged.origin("api.reasoning.max_tokens") == f"{tmp_path}/local.toml:3"
    assert merged.origin('models."y.z"') == f"{tmp_path}/local.toml:6"


def test_permission_rules_of_all_layers_add_up(tmp_path: Path) -> None:
    user = write(tmp_path, "config.toml", '[permissions]\ndeny = ["bash:rm *"]\nallow = ["read"]\n')
    local = write(tmp_path, "local.toml", '[permissions]\ndeny = ["fetch"]\n')
    lists = settings(user, local).of(PermissionSettings).permissions
    assert lists == RuleLists(allow=("read",), deny=("bash:rm *", "fetch"))


def test_settings_of_chibi_that_mean_nothing_here_are_told_and_nothing_else(tmp_path: Path) -> None:
    text = 'model = "m"\nfallback_tool = "call_user"\n[storage]\npartition_max_entries = 5\n[vfs]\nbackend = "local"\n'
    found = settings(write(tmp_path, "config.toml", text))
    assert found.of(Sample).model == "m"
    told = [str(problem).split("config.toml:")[1].split(" of chibi")[0] for problem in found.problems]
    assert told == ["2: `fallback_tool`", "3: `storage`", "5: `vfs`"]


@pytest.mark.parametrize(
    ("text", "where", "message", "hint"),
    [
        ('\n\nmodle = "x"', "config.toml:3", "unknown setting `modle`", "did you mean `model`?"),
        ("[plugins.x]\na = 1", "config.toml:1", "unknown setting `plugins`", ""),
        ("[permissions]\n\nalow = []", "config.toml:3", "unknown setting `permissions.alow`", "`permissions.allow`?"),
        (
            "[api]\ntemprature = 1",
            "config.toml:2",
            "unknown setting `api.temprature`",
            "did you mean `api.temperature`?",
        ),
        ("[api.reasoning]\nefort = 'low'", "config.toml:2", "`api.reasoning.efort`", "`api.reasoning.effort`?"),
        ('[models."a.b"]\nmodl = 1', "config.toml:2", 'unknown setting `models."a.b".modl`', '`models."a.b".model`?'),
        ("[models.x.api]\nseed = 1\n", "config.toml:2", "unknown setting `models.x.api.seed`", ""),
        ("model = 5", "config.toml:1", "`model`: expected text, got a whole number", ""),
        ("context_window_limit = '5'", "config.toml:1", "expected a whole number, got text", ""),
        ("context_window_limit = true", "config.toml:1", "expected a whole number, got true or false", ""),
        ("auto_compact = 'yes'", "config.toml:1", "expected true or false, got text", ""),
        ("warn_threshold_percent = []", "config.toml:1", "expected a number, got a list", ""),
        ("[model]\na = 1", "config.toml:1", "`model`: expected text, got a table", ""),
        ("api = 'x'", "config.toml:1", "`api`: expected a table, got text", ""),
        ("[api]\nreasoning = 'x'", "config.toml:2", "`api.reasoning`: expected a table, got text", ""),
        ("[api]\nstop = [\n'a', 1]", "config.toml:2", "`api.stop[1]`: expected text, got a whole number", ""),
        ("[permissions]\nallow = 'bash'", "config.toml:2", "`permissions.allow`: expected a list, got text", ""),
        ("[permissions]\ndeny = ['Bash(rm)']", "config.toml:2", "rule `Bash(rm)` is not of the form", 'write "bash:…"'),
        ("mode = 'auot'", "config.toml:1", "unknown mode `auot`", "did you mean `auto`?"),
        ("effort = 'middle'", "config.toml:1", "expected one of `low`, `high`, got `middle`", ""),
        ("effort = 'hihg'", "config.toml:1", "expected one of", "did you mean `high`?"),
        ("[url_policy]\ndeny = []", "config.toml:1", "`url_policy` of chibi is not known here", "[permissions] deny"),
        ("[tools]\nexclude = []", "config.toml:1", "`tools` of chibi is not known here", "[permissions] deny"),
        ("[models.x]\ncontext_window = 'x'", "config.toml:2", "`models.x.context_window`: expected a whole number", ""),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, text: str, where: str, message: str, hint: str) -> None:
    error = failure(write(tmp_path, "config.toml", text))
    assert len(error.problems) == 1
    assert error.message.startswith(f"{tmp_path}/{where}: ")
    assert message in error.message
    assert hint in error.hint
    assert bool(error.hint) == bool(hint)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a = 1\nb = \n", ":2:5"),
        ("a = 1\n[a.b", ":2"),
        ("a = 1\na = 2\n", ":2"),
        ("x = [1,\n2", ":2"),
        ("\x00", ":1:1"),
        ("a = 1\nb = " + "9" * 5000, ""),
    ],
)
def test_broken_toml_is_told_with_line_and_column(tmp_path: Path, text: str, place: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match="not TOML") as caught:
        read_layer("user", path)
    assert f"{path}{place}" in caught.value.message


def test_bytes_that_are_not_utf8_are_told_with_the_line(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b'a = 1\nmodel = "\xff"\n')
    with pytest.raises(ConfigError, match=r"config\.toml:2: not UTF-8"):
        read_layer("user", path)


def test_a_folder_in_place_of_the_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_layer("user", tmp_path)


def test_a_link_to_nothing_is_an_error_since_its_rules_are_lost(tmp_path: Path) -> None:
    (tmp_path / "config.toml").symlink_to("/nowhere/config.toml")
    with pytest.raises(ConfigError, match=r"is a link to /nowhere/config.toml, which is not there") as told:
        read_layer("user", tmp_path / "config.toml")
    assert "mend the link, or remove it" in str(told.value)


def test_a_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b'\xef\xbb\xbfmodel = "x"\r\n')
    layer = read_layer("user", path)
    assert layer is not None and layer.data == {"model": "x"}
    assert layer.text.encode() == path.read_bytes()


def test_several_errors_are_reported_together(tmp_path: Path) -> None:
    user = write(tmp_path, "config.toml", 'modle = "x"\nmodel = 1\n')
    local = write(tmp_path, "local.toml", "usernam = 'a'\n")
    error = failure(user, local)
    assert len(error.problems) == 3
    assert error.message.startswith("3 settings are wrong:\n")
    assert f"{tmp_path}/local.toml:1: unknown setting `usernam` (did you mean `username`?)" in error.message


@pytest.mark.parametrize(("file", "layer"), [("local.toml", "context"), (".cru/config.toml", "project")])
def test_a_setting_of_the_whole_home_folder_is_refused_elsewhere(tmp_path: Path, file: str, layer: str) -> None:
    error = failure(write(tmp_path, file, "\nlock_heartbeat_seconds = 5"))
    assert error.message == f"{tmp_path}/{file}:2: `lock_heartbeat_seconds` cannot be set for one {layer}"
    assert "home folder's config.toml" in error.hint
    assert settings(write(tmp_path, "config.toml", "lock_heartbeat_seconds = 5")).of(Sample).lock_heartbeat_seconds == 5


@pytest.mark.parametrize(
    ("variable", "value", "key", "expected"),
    [
        ("CRU_MODEL", "x", "model", "x"),
        ("CRU_API_KEY", "k", "api_key", "k"),
        ("CRU_BASE_URL", "http://h", "base_url", "http://h"),
        ("CRU_USERNAME", "5", "username", "5"),
        ("CRU_CONTEXT_WINDOW_LIMIT", "12", "context_window_limit", 12),
        ("CRU_AUTO_COMPACT", "true", "auto_compact", True),
        ("CRU_AUTO_COMPACT", "0", "auto_compact", False),
        ("CRU_WARN_THRESHOLD_PERCENT", "12.5", "warn_threshold_percent", 12.5),
    ],
)
def test_a_variable_sets_a_scalar_setting(variable: str, value: str, key: str, expected: object) -> None:
    merged = settings(environment_layer({variable: value, "PATH": "/bin"}))
    assert getattr(merged.of(Sample), key) == expected
    assert merged.problems == ()


def test_the_mode_comes_from_the_environment_too() -> None:
    assert settings(environment_layer({"CRU_MODE": "plan"})).of(PermissionSettings).mode == "plan"
    assert "did you mean `trust`?" in failure(environment_layer({"CRU_MODE": "turst"})).hint


def test_an_empty_variable_counts_as_unset_and_our_other_variables_are_no_settings() -> None:
    env = {"CRU_MODEL": "", "CRU_HOME": "/h", "CRU_PROJECT_ROOT": "/p", "CRU_CONTEXT": "c", "HOME": "/x"}
    assert environment_layer(env).data == {}


def test_an_unknown_variable_is_a_warning_with_the_closest_name() -> None:
    (problem,) = settings(environment_layer({"CRU_MODLE": "x"})).problems
    assert str(problem) == "environment CRU_MODLE: unknown setting `modle` (did you mean `model`?)"


def test_a_table_cannot_be_set_by_a_variable() -> None:
    (problem,) = settings(environment_layer({"CRU_API": "x"})).problems
    assert "`api` is a table" in problem.message


def test_a_variable_of_the_wrong_type_is_an_error() -> None:
    error = failure(environment_layer({"CRU_CONTEXT_WINDOW_LIMIT": "many"}))
    assert (
        error.message
        == "environment CRU_CONTEXT_WINDOW_LIMIT: `context_window_limit`: expected a whole number, got text"
    )


def test_words_of_the_command_line_become_numbers_where_numbers_are_wanted() -> None:
    layer = Layer("command line", {"context_window_limit": "7", "api": {"temperature": "0.5"}})
    merged = settings(layer).of(Sample)
    assert (merged.context_window_limit, merged.api) == (7, {"temperature": 0.5})


def test_an_untrusted_project_may_only_add_asks_and_denies(tmp_path: Path) -> None:
    text = (
        'mode = "trust"\nbase_url = "http://evil"\nnonsense = 1\n'
        '[permissions]\nallow = ["bash"]\nask = ["read"]\ndeny = ["fetch"]\n[api]\ntemperature = 2\n'
    )
    kept, problems = restrict_untrusted(write(tmp_path, ".cru/config.toml", text))
    assert kept.data == {"permissions": {"ask": ["read"], "deny": ["fetch"]}}
    assert [p.where.rpartition(":")[2] for p in problems] == ["1", "2", "3", "5", "8"]
    assert all("cru trust" in p.hint and ".cru/config.toml" in p.hint for p in problems)
    assert settings(kept).of(PermissionSettings) == PermissionSettings("ask", RuleLists(ask=("read",), deny=("fetch",)))


def test_secrets_are_shown_only_as_set() -> None:
    merged = settings(environment_layer({"CRU_API_KEY": "secret", "CRU_MODEL": "m"}))
    assert merged.as_dict()["api_key"] == "set"
    assert settings().as_dict()["api_key"] == ""
    assert "secret" not in repr(merged.as_dict())
    assert (merged.value("model"), merged.value("permissions.allow")) == ("m", ())
    with pytest.raises(ConfigError, match="unknown setting `modle`"):
        merged.value("modle")


def test_without_a_file_neither_tomllib_nor_a_checker_is_loaded(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from cru.core.base.config.layers import environment_layer, read_layer\n"
        "from cru.core.base.config.layers import merge_layers\n"
        "from cru.core.guard.rules import PermissionSettings\n"
        f"layer = read_layer('user', Path({str(tmp_path / 'none')!r}))\n"
        "merge_layers([PermissionSettings], [environment_layer({})])\n"
        "config, rules = 'cru.core.base.config.', 'cru.core.guard.rules.rules'\n"
        "bad = {'tomllib', 'tomlkit', config + 'check', config + 'positions', rules, 'hashlib'}\n"
        "print(sorted(bad & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_pipe_or_a_device_in_a_files_place_is_an_error_that_names_it_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "config.toml"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(ConfigError, match="not a regular file") as caught:
            read_layer("user", path)
        assert str(path) in str(caught.value)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    with path.open("wb") as file:
        file.truncate(50 << 30)
    with pytest.raises(ConfigError, match="larger than 1 MiB"):
        read_layer("project", path)


def test_a_struct_is_described_once_however_many_keys_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """msgspec evaluates all its annotations for that, which are text."""

    class Fresh(Struct, frozen=True):
        color: str = ""
        size: int = 0

    described: list[type[Struct]] = []

    def describe(struct: type[Struct]) -> tuple[FieldInfo, ...]:
        described.append(struct)
        return fields(struct)

    monkeypatch.setattr(check, "fields", describe)
    merged = merge_layers((Fresh,), [Layer("one", {"color": "red", "size": 1}), Layer("two", {"size": 2})])
    assert merged.of(Fresh) == Fresh("red", 2) and described == [Fresh]
