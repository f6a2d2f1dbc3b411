"""Which files of a folder are plugins, and what is said about the others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.core.tools.box import unprivileged

from cru.core.plugins.discovery.files import DiscoveredPlugin, discover_folder, list_untrusted


def made(folder: Path, *files: str) -> Path:
    """A folder with these empty files; `+x NAME` is executable, `NAME -> TARGET` a link, `NAME: TEXT` has a content."""
    for file in files:
        text, link = "", file.partition(" -> ")
        name, _, text = file.partition(": ")
        path = folder / (link[0] if link[1] else name.removeprefix("+x "))
        path.parent.mkdir(parents=True, exist_ok=True)
        if link[1]:
            path.symlink_to(link[2])
            continue
        path.write_text(text)
        path.chmod(0o755 if name.startswith("+x ") else 0o644)
    return folder


def told(folder: Path, found: list[DiscoveredPlugin]) -> dict[str, tuple[str, list[str]]]:
    return {one.name: (one.kind, [str(file.relative_to(folder)) for file in one.files]) for one in found}


KINDS: dict[str, tuple[tuple[str, ...], dict[str, tuple[str, list[str]]]]] = {
    "single files": (("a.lua", "b.py"), {"a": ("lua", ["a.lua"]), "b": ("python", ["b.py"])}),
    "folders": (
        ("a/init.lua", "b/__init__.py"), {"a": ("lua", ["a/init.lua"]), "b": ("python", ["b/__init__.py"])},
    ),
    "a folder without a main file": (
        ("a/hooks/z.lua", "a/flows/y.lua", "a/lua/help.lua", "a/tests/x.lua", "a/hooks/z_test.lua", "a/.git/g.lua"),
        {"a": ("lua", ["a/flows/y.lua", "a/hooks/z.lua"])},
    ),
    "Fennel": (("a.fnl",), {"a": ("lua", ["a.fnl"])}),
    "folders with Fennel": (
        ("a/init.fnl", "b/z.fnl", "b/y.lua", "b/z_test.fnl", "b/lua/help.fnl", "c/plugin.yaml: main: run.fnl", "c/run.fnl"),
        {"a": ("lua", ["a/init.fnl"]), "b": ("lua", ["b/y.lua", "b/z.fnl"]), "c": ("lua", ["c/run.fnl"])},
    ),
    "programs": (
        ("+x a", "+x b.py", "+x c/c", "d/d", "+x e.disabled", "../elsewhere/f: x"),
        {"a": ("executable", ["a"]), "b": ("executable", ["b.py"]), "c": ("executable", ["c/c"])},
    ),
    "Lua is Lua, whatever its bits": (("+x a.lua",), {"a": ("lua", ["a.lua"])}),
    "left out": (("a.lua.disabled", "b.disabled/init.lua", ".c.lua", "__d__/init.lua", "e.txt", "f/readme.md"), {}),
    "a link": (("../elsewhere/init.lua", "a -> ../elsewhere"), {"a": ("lua", ["a/init.lua"])}),
    "a manifest": (
        ("a/plugin.yaml: name: other\nmain: src/run.lua", "a/src/run.lua"), {"other": ("lua", ["a/src/run.lua"])},
    ),
    "a manifest with Python": (
        ("a/manifest.yml: main: run.py", "a/run.py"), {"a": ("python", ["a/run.py"])},
    ),
    "a manifest beside a package": (
        ("a/plugin.yml: {}", "a/__init__.py"), {"a": ("python", ["a/__init__.py"])},
    ),
    "the manifest decides between two": (
        ("a/plugin.yaml: main: __init__.py", "a/__init__.py", "a/init.lua"), {"a": ("python", ["a/__init__.py"])},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", KINDS)
def test_files_are_plugins_by_their_name_and_place(tmp_path: Path, case: str) -> None:
    files, expected = KINDS[case]
    folder = made(tmp_path / "plugins", *files)
    found, problems = discover_folder(folder, "user")
    assert (told(folder, found), problems) == (expected, [])
    assert all(one.loadable and one.layer == "user" for one in found)


# files → what is said of those that are no plugins
ODD: dict[str, tuple[tuple[str, ...], str]] = {
    "a dangling link": (("a.lua -> nowhere.lua",), "a.lua: a link to nothing"),
    "a loop of links": (("a.lua -> b.lua", "b.lua -> a.lua"), "a.lua: Too many levels of symbolic links"),
    "a link upwards": (("x.lua", "a -> .."), "a leads to a folder that it lies in"),
}


@pytest.mark.parametrize("case", ODD)
def test_what_is_no_plugin_is_told_and_the_others_are_found(tmp_path: Path, case: str) -> None:
    files, expected = ODD[case]
    folder = made(tmp_path / "plugins", *files, "good.lua")
    found, problems = discover_folder(folder, "user")
    assert "good" in told(folder, found) and "a" not in told(folder, found)
    assert f"{folder}/{expected}" in problems


# files → the problem of the plugin `a`
BROKEN: dict[str, tuple[tuple[str, ...], str]] = {
    "two languages": (("a.lua", "a.py"), "two plugins are called a: {0}/a.lua and {0}/a.py; neither is loaded"),
    "a name twice": (("a.lua", "b/plugin.yaml: name: a", "b/init.lua"), "two plugins are called a"),
    "two main files": (("a/init.lua", "a/__init__.py"), "both {0}/a/init.lua and __init__.py could be run"),
    "an executable and a main file": (("a/init.lua", "+x a/a"), "both {0}/a/init.lua and a could be run"),
    "two main files and a manifest": (("a/init.lua", "a/__init__.py", "a/plugin.yaml: {}"), "name one"),
    "no main file": (("a/plugin.yaml: version: 1.2.0",), "{0}/a/plugin.yaml: main: there is no init.lua beside it"),
    "a main file that is not there": (("a/plugin.yaml: main: run.lua", "a/init.lua"), "main: there is no file run.lua"),
    "Lua and Fennel": (("a/init.lua", "a/init.fnl"), "both {0}/a/init.lua and init.fnl could be run"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_plugin_that_cannot_be_loaded_says_why_and_keeps_its_name(tmp_path: Path, case: str) -> None:
    files, expected = BROKEN[case]
    folder = made(tmp_path / "plugins", *files, "good.lua")
    found, problems = discover_folder(folder, "user")
    by_name = {one.name: one for one in found}
    assert problems == [] and by_name["good"].loadable
    assert not by_name["a"].loadable and expected.format(folder) in by_name["a"].problem


def test_a_folder_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert discover_folder(tmp_path / "loop", "user") == (
        [], [f"{tmp_path}/loop cannot be read: Too many levels of symbolic links"],
    )  # fmt: skip
    assert discover_folder(tmp_path / "none", "user") == ([], [])


def test_what_may_not_be_read_is_told_and_the_others_are_found(tmp_path: Path) -> None:
    folder = made(tmp_path / "plugins", "a/init.lua", "b/plugin.yaml: name: b", "b/init.lua", "c/x/y.lua", "good.lua")
    for closed in ("a", "b/plugin.yaml", "c/x"):
        (folder / closed).chmod(0)
    code = (
        "import sys; from pathlib import Path; from cru.core.plugins.discovery.files import discover_folder\n"
        "found, problems = discover_folder(Path(sys.argv[1]), 'user')\n"
        "print(*problems, *(f'{one.name}: {one.problem}' for one in found), sep='\\n')"
    )
    run = subprocess.run([*unprivileged(), sys.executable, "-c", code, str(folder)], capture_output=True, text=True)
    (folder / "a").chmod(0o755)
    (folder / "c" / "x").chmod(0o755)
    assert run.stderr == "" and run.stdout.splitlines() == [
        f"{folder}/a: Permission denied",
        f"{folder}/c/x cannot be read: Permission denied",
        f"b: {folder}/b/plugin.yaml cannot be read: Permission denied",
        "good: ",
    ]


def test_of_strangers_nothing_is_opened_and_no_link_followed(tmp_path: Path) -> None:
    folder = made(tmp_path / "plugins", "a.lua", "b.py", "c/plugin.yaml: name: [", "d -> /", "e.txt", "f.lua.disabled")
    os.mkfifo(folder / "g.lua")
    found = list_untrusted(folder)
    assert {one.name: one.kind for one in found} == {"a": "lua", "b": "python", "c": "lua", "g": "lua"}
    assert not any(one.trusted or one.loadable for one in found)
