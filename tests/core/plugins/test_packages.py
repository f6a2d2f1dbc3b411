"""Plugins of installed packages: found by entry points, remembered, and never at the price of importlib.metadata."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from tests.faces.test_start import WITHOUT_HOOKS
from tests.kit import HomeDir, Reply, cru, server

from cru.core.plugins.packages import CACHE, Package, installed_packages

WELCOME = "def setup(cru):\n    cru.on('turn:complete', lambda ctx, event: cru.toast('welcome'))\n"


def install(site: Path, name: str = "cru-welcome", version: str = "1.4", points: str = "", **modules: str) -> Path:
    """A package in this folder, as an installer leaves it. Modules: name → source, `__` stands for a dot."""
    record = site / f"{name.replace('-', '_')}-{version}.dist-info"
    record.mkdir(parents=True)
    (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (record / "entry_points.txt").write_text(points or "[cru.extensions]\nwelcome = welcome_plugin\n")
    for module, source in modules.items():
        path = site.joinpath(*module.split("__")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return record


def rows(home: HomeDir, *sites: Path) -> dict[str, dict[str, object]]:
    run = cru("plugin", "list", "--json", home=home, env={"PYTHONPATH": os.pathsep.join(map(str, sites))})
    assert run.code == 0, run.err
    return {row["name"]: row for row in msgspec.json.decode(run.out) if row["layer"] == "package"}


@pytest.mark.slow
def test_a_package_is_a_plugin_at_once_and_runs(home: HomeDir, tmp_path: Path) -> None:
    site = tmp_path / "site"
    install(site, welcome_plugin=WELCOME)
    with server([Reply("ok")]) as model:
        home.configure(url=model.url)
        run = cru("hello", home=home, env={"PYTHONPATH": str(site)})
    assert (run.code, run.out) == (0, "ok\n") and "welcome" in run.err, run.err
    row = rows(home, site)["welcome"]
    assert (row["state"], row["file"]) == ("active", str(site / "welcome_plugin.py"))


def test_a_module_inside_of_a_package_that_registers_itself(home: HomeDir, tmp_path: Path) -> None:
    site = tmp_path / "site"
    points = "[console_scripts]\ndeep = no:where\n\n[cru.extensions]\n# a comment\ndeep = outer.inner.deep [extra]\n"
    source = "from cru import on\non('turn:complete', lambda ctx, event: None)\n"
    install(site, points=points, outer____init__="", outer__inner____init__="", outer__inner__deep=source)
    row = rows(home, site)["deep"]
    assert (row["state"], row["file"]) == ("active", str(site / "outer" / "inner" / "deep.py"))


@pytest.mark.slow
def test_a_package_can_be_switched_off_and_comes_after_the_users_own(home: HomeDir, tmp_path: Path) -> None:
    site = tmp_path / "site"
    install(site, welcome_plugin="raise SystemExit('never imported')")
    home.configure("[plugins.welcome]\nenabled = false\n")
    assert rows(home, site)["welcome"]["state"] == "disabled"
    home.configure("")
    (home.cru / "plugins").mkdir()
    (home.cru / "plugins" / "welcome.lua").write_text("")
    assert rows(home, site) == {}


# entry points → what is said
BAD: dict[str, tuple[str, str]] = {
    "a function": ("[cru.extensions]\nbad = welcome_plugin:setup\n", "must name a module, not 'welcome_plugin:setup'"),
    "nothing": ("[cru.extensions]\nbad =\n", "must name a module, not ''"),
    "a module that is not there": ("[cru.extensions]\nbad = gone_plugin\n", "there is no module gone_plugin"),
    "a module that is not in its package": ("[cru.extensions]\nbad = welcome_plugin.x\n", "there is no module"),
    "a name twice": (
        "[cru.extensions]\nbad = welcome_plugin\nbad = other_plugin\n", "two plugins are called bad",
    ),
}  # fmt: skip


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", BAD)
def test_an_entry_point_that_leads_nowhere_is_told_with_its_file(home: HomeDir, tmp_path: Path, case: str) -> None:
    points, expected = BAD[case]
    install(tmp_path / "site", points=points, welcome_plugin=WELCOME, other_plugin=WELCOME)
    row = rows(home, tmp_path / "site")["bad"]
    assert row["state"] == "error" and expected in str(row["errors"]) and str(tmp_path) in str(row["errors"])


def test_a_package_that_comes_or_goes_is_noticed_although_the_answer_is_kept(tmp_path: Path) -> None:
    home, site = tmp_path / "home", tmp_path / "site"
    site.mkdir()
    path = ["relative", str(site), str(tmp_path / "none.zip")]
    assert installed_packages(home, path) == ()
    record = install(site)
    expected = Package("welcome", "welcome_plugin", "1.4", str(record / "entry_points.txt"))
    assert installed_packages(home, path) == (expected,)
    (record / "entry_points.txt").unlink()  # within the record: only a new look would see that
    assert installed_packages(home, path) == (expected,)
    (record / "METADATA").unlink()
    record.rmdir()
    assert installed_packages(home, path) == ()


def test_of_a_package_that_is_there_twice_the_first_counts(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    install(first, "Cru.Welcome", "2.0")
    install(second, "cru-welcome", "1.0")
    assert [p.version for p in installed_packages(tmp_path, [str(first), str(second)])] == ["2.0"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"folders": 5}', b"\xff\x00", b'{"folders": [["a", "b"]]}'])
def test_a_corrupt_cache_is_made_anew(tmp_path: Path, content: bytes) -> None:
    site = tmp_path / "site"
    install(site)
    file = tmp_path / CACHE
    file.parent.mkdir()
    file.write_bytes(content)
    found = installed_packages(tmp_path, [str(site)])
    assert [p.name for p in found] == ["welcome"]
    kept = file.read_bytes()
    assert kept != content and installed_packages(tmp_path, [str(site)]) == found and file.read_bytes() == kept


def test_a_home_that_cannot_be_written_only_costs_time(tmp_path: Path) -> None:
    install(tmp_path / "site")
    (tmp_path / "cache").write_text("in the way")
    assert [p.name for p in installed_packages(tmp_path, [str(tmp_path / "site")])] == ["welcome"]


@pytest.mark.slow
def test_a_start_without_plugins_loads_nothing_of_them(home: HomeDir, tmp_path: Path) -> None:
    """Nor a library that reads packages, cold or warm."""
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom cru.core.compose import Start, build\n"
        "here = Path(sys.argv[1])\n"
        "built = build(Start(here / 'home', 'c', {'HOME': str(here)}, here, here))\n"
        "assert built.extensions is None\nprint(*sys.modules)"
    )
    written = set()
    for _ in range(2):
        run = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, env=home.env)
        assert run.returncode == 0, run.stderr
        modules = set(run.stdout.split())
        assert not modules & {"importlib.metadata", "yaml", "zipfile", "email", "lupa"}
        assert {m for m in modules if m.startswith("cru.core.plugins.")} == {"cru.core.plugins.packages"}
        assert {m for m in modules if f"{m}.".startswith("cru.core.hooks.")} == set(WITHOUT_HOOKS)
        written.add((tmp_path / "home" / CACHE).stat().st_ino)
    assert len(written) == 1  # the second start wrote nothing
