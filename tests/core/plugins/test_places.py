"""Where plugins are looked for, which wins, and in which order they are loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.kit import HomeDir, Reply, cru, server

from cru.core.guard.trust.accepted_files import TrustStore
from cru.core.guard.trust.snapshot import take_snapshot
from cru.core.plugins.discovery.files import DiscoveredPlugin
from cru.core.plugins.discovery.load_order import sort_by_dependencies
from cru.core.plugins.discovery.manifest import Dependency, Manifest
from cru.core.plugins.discovery.places import PluginFolders


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def rows(home: HomeDir, **env: str) -> dict[str, dict[str, Any]]:
    run = cru("plugin", "list", "--json", home=home, env=env)
    assert run.code == 0, run.err
    return {row["name"]: row for row in msgspec.json.decode(run.out)}


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PluginFolders:
    """One plugin `same` in every place, and one of its own."""
    monkeypatch.setattr("cru.core.plugins.discovery.places.BUNDLED", tmp_path / "bundled")
    folders = {
        "path": tmp_path / "path", "other": tmp_path / "other", "user": tmp_path / "home" / "plugins",
        "runtime": tmp_path / "runtime" / "plugins", "project": tmp_path / "project" / ".cru" / "plugins",
        "bundled": tmp_path / "bundled",
    }  # fmt: skip
    for name, folder in folders.items():
        write(folder / "same.lua")
        write(folder / f"{name}.lua")
    TrustStore(tmp_path / "home" / "trust.json").trust_folder(take_snapshot(folders["project"], tmp_path / "project"))
    env = {"CRU_PLUGIN_PATH": str(tmp_path / "path"), "CRUCIBLE_PLUGIN_PATH": f":{tmp_path / 'other'}:"}
    config = {"same": {"enabled": True}, "bundled": {"enabled": True}}
    return PluginFolders(tmp_path / "home", tmp_path / "project", env, (str(tmp_path / "runtime"),), config)


def test_the_first_place_of_a_name_wins(places: PluginFolders) -> None:
    order = ["path", "path", "user", "runtime", "project", "bundled"]
    for number, layer in enumerate(order):
        found, problems = places.find()
        (same,) = [one for one in found if one.name == "same"]
        hidden = max(len(order) - 2 - number, 0)  # of those that come with cru nothing is told
        assert len(problems) == hidden and all(f"{same.files[0]} is a plugin of the same name" in p for p in problems)
        assert same.layer == layer and same.loadable
        names = [one.name for one in found if one.name != "same"]
        assert names == ["path", "other", "user", "runtime", "project", "bundled"]
        if number < len(order) - 1:
            folder = Path(places.search()[number])
            (folder / "same.lua").unlink()


def test_modules_are_searched_in_the_same_order(places: PluginFolders, tmp_path: Path) -> None:
    names = [Path(folder).relative_to(tmp_path).parts[0] for folder in places.search()]
    assert names == ["path", "other", "home", "runtime", "home", "bundled"]
    assert "/home/trusted/project-" in places.search()[4]


def test_a_bundled_one_is_off_until_it_is_turned_on_and_a_copy_of_it_wins(
    places: PluginFolders, tmp_path: Path
) -> None:
    off = msgspec.structs.replace(places, config={})
    assert [one.name for one in off.find()[0] if not one.enabled] == ["bundled"]
    write(tmp_path / "home" / "plugins" / "bundled.lua")
    assert [one.layer for one in off.find()[0] if one.name == "bundled"] == ["user"]


def test_the_settings_overrule_a_manifest(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        write(tmp_path / "plugins" / name / "init.lua")
    for name in ("one", "two"):
        write(tmp_path / "plugins" / name / "plugin.yaml", "enabled: false")
    config = {"two": {"enabled": True}, "three": {"enabled": False}, "watch": True}
    found, _ = PluginFolders(tmp_path, tmp_path / "project", config=config).find()
    assert {one.name: one.enabled for one in found if one.layer == "user"} == {
        "one": False,
        "two": True,
        "three": False,
    }


def test_a_place_that_is_not_there_or_not_named_in_full_is_told(tmp_path: Path) -> None:
    write(tmp_path / "file")
    env = {"CRU_PLUGIN_PATH": f"{tmp_path}/none:plugins", "CRUCIBLE_PLUGIN_PATH": f"{tmp_path}/file"}
    found, problems = PluginFolders(tmp_path, tmp_path, env, (f"{tmp_path}/gone",)).find()
    assert problems == [
        f"CRU_PLUGIN_PATH: there is no folder {tmp_path}/none",
        "CRU_PLUGIN_PATH: plugins is not looked at: it must be a full path, or begin with ~",
        f"CRUCIBLE_PLUGIN_PATH: there is no folder {tmp_path}/file",
        f"runtimepath: there is no folder {tmp_path}/gone",
    ]
    assert {one.layer for one in found} <= {"bundled"}


def test_places_of_the_environment_and_of_the_settings_through_the_command(home: HomeDir, tmp_path: Path) -> None:
    write(tmp_path / "path" / "one.lua", "cru.log('debug', 'one')\n")
    write(home.path / "more" / "plugins" / "two.lua")
    home.configure('runtimepath = ["~/more"]\n')
    shown = rows(home, CRU_PLUGIN_PATH=str(tmp_path / "path"))
    assert {name: shown[name]["layer"] for name in ("one", "two")} == {"one": "path", "two": "runtime"}
    with server([Reply("ok")]) as model:
        home.configure('runtimepath = ["/gone"]\n', url=model.url)
        run = cru("hello", home=home, env={"CRU_PLUGIN_PATH": str(tmp_path / "path")})
    assert (run.code, run.err) == (0, "cru: runtimepath: there is no folder /gone\n")


# settings → what is said
WRONG: dict[str, tuple[str, str]] = {
    "a plugin that is no table": ("[plugins]\nwatch = true\nguard = 5\n", ":3: `plugins.guard`: expected a table, got a whole"),
    "enabled is a word": ("[plugins.guard]\nenabled = 'yes'\n", ":2: `plugins.guard.enabled`: expected true or false, got text"),
    "watch is a number": ("[plugins]\nwatch = 1\n", ":2: `plugins.watch`: expected true or false, got a whole number"),
    "watch is a table": ("[plugins.watch]\nenabled = true\n", ":1: `plugins.watch`: expected true or false, got a table"),
    "plugins is a word": ("plugins = 'all'\n", ":1: `plugins`: expected a table, got text"),
    "runtimepath is a word": ("runtimepath = '/x'\n", ":1: `runtimepath`: expected a list, got text"),
    "a number in runtimepath": ("runtimepath = ['/x', 5]\n", ":1: `runtimepath[1]`: expected text, got a whole number"),
    "a relative runtimepath": ("runtimepath = ['x']\n", ":1: `runtimepath`: `x` must be a full path, or begin with ~"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_settings_of_a_wrong_type_are_told_with_their_line(home: HomeDir, case: str) -> None:
    text, expected = WRONG[case]
    home.configure(text)
    run = cru("plugin", "list", home=home)
    assert run.code != 0 and f"config.toml{expected}" in run.err and "Traceback" not in run.err


def test_a_plugin_reads_any_other_key_of_its_table(home: HomeDir) -> None:
    write(
        home.cru / "plugins" / "a.lua",
        "cru.on('turn:complete', function() cru.toast(cru.config.get('a.deep').enabled) end)",
    )
    with server([Reply("ok")]) as model:
        home.configure('[plugins]\nwatch = false\n[plugins.a]\nkey = 1\ndeep = {enabled = "text"}\n', url=model.url)
        run = cru("hello", home=home)
    assert run.code == 0 and "text" in run.err


def test_an_untrusted_project_sets_no_place(home: HomeDir) -> None:
    write(home.path / "evil" / "plugins" / "evil.lua", "error('ran')")
    write(
        home.project / ".cru" / "config.toml",
        f'runtimepath = ["{home.path}/evil"]\n[plugins.ralph-loop]\nenabled = true\n',
    )
    assert "evil" not in rows(home)
    assert "`runtimepath` is ignored: this project is not trusted" in cru("plugin", "list", home=home).err


# order --------------------------------------------------------------------------------------------------------------------------


def plugin(name: str, *needs: str, **fields: Any) -> DiscoveredPlugin:
    """A plugin that needs others; one with `?` only if it is there."""
    dependencies = tuple(Dependency(need.rstrip("?"), need.endswith("?")) for need in needs)
    return DiscoveredPlugin(
        name, "lua", (Path(name),), Path(), manifest=Manifest(name, dependencies=dependencies), **fields
    )


# plugins → their names in load order, the problem of each that has one
ORDER: dict[str, tuple[list[DiscoveredPlugin], str, dict[str, str]]] = {
    "as they are": ([plugin("b"), plugin("a"), plugin("c")], "b a c", {}),
    "needs first": ([plugin("a", "b"), plugin("b", "c"), plugin("c")], "c b a", {}),
    "an optional one is there": ([plugin("a", "b?"), plugin("b")], "b a", {}),
    "an optional one is not": ([plugin("a", "b?")], "a", {}),
    "missing": ([plugin("alfa", "betta"), plugin("beta")], "alfa beta", {"alfa": "betta, which is not there (did you mean `beta`?)"}),
    "off": ([plugin("a", "b"), plugin("b", enabled=False)], "b a", {"a": "which is off (`[plugins.b] enabled = true`)"}),
    "untrusted": ([plugin("a", "b"), plugin("b", trusted=False)], "b a", {"a": "which is not trusted (`cru trust`)"}),
    "broken": ([plugin("a", "b"), plugin("b", problem="no")], "b a", {"a": "b, which cannot be loaded", "b": "no"}),
    "over two": ([plugin("a", "b"), plugin("b", "c")], "b a", {"a": "b, which cannot be loaded", "b": "c, which is not there"}),
    "itself": ([plugin("a", "a")], "a", {"a": "it needs itself: a → a"}),
    "a cycle": (
        [plugin("x", "a"), plugin("a", "b"), plugin("b", "c"), plugin("c", "a")], "a x c b",
        {"a": "it needs itself: a → b → c → a", "c": "a, which cannot be loaded", "b": "c, which", "x": "a, which"},
    ),
    "a cycle of one that is off": ([plugin("a", "b"), plugin("b", "a", enabled=False)], "b a", {"a": "b, which is off"}),
}  # fmt: skip


@pytest.mark.parametrize("case", ORDER)
def test_what_a_plugin_needs_is_loaded_before_it(case: str) -> None:
    plugins, order, problems = ORDER[case]
    found = sort_by_dependencies(plugins)
    assert [one.name for one in found] == order.split()
    told = {one.name: one.problem for one in found if one.problem}
    assert told.keys() == problems.keys() and all(problems[name] in told[name] for name in told), told


def test_dependencies_and_errors_through_the_command(home: HomeDir) -> None:
    folder = home.cru / "plugins"
    for name, needs in {"aa": "zz", "zz": "", "one": "two", "two": "one"}.items():
        write(folder / name / "init.lua", f"cru.toast('loading {name}')")
        write(folder / name / "plugin.yaml", f"dependencies: [{f'{{name: {needs}}}' if needs else ''}]")
    write(folder / "cut" / "plugin.yaml", "name: [\n")
    with server([Reply("ok")]) as model:
        home.configure(url=model.url)
        run = cru("hello", home=home)
    assert (run.code, run.out) == (0, "ok\n") and "Traceback" not in run.err
    assert run.err.index("loading zz") < run.err.index("loading aa")
    assert "plugin one is not loaded: it needs itself: one → two → one" in run.err
    assert "plugin two is not loaded: it needs the plugin one, which cannot be loaded" in run.err
    assert f"plugin cut is not loaded: {folder}/cut/plugin.yaml:2: not YAML" in run.err
    shown = rows(home)
    assert {name: shown[name]["state"] for name in ("aa", "zz", "one", "two", "cut")} == {
        "aa": "active", "zz": "active", "one": "error", "two": "error", "cut": "error",
    }  # fmt: skip
