"""Which files are programs, where they are looked for, and what is run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.core.plugins.executables.programs import SHAPES, calls, listed, program, results, script, shape, tool
from tests.kit import HomeDir, cru, pty, server
from tests.kit.steps import Call, Reply


def test_files_and_folders_are_plugins_others_are_not(home: HomeDir) -> None:
    tool(home, "plain", "echo")
    shape(home, "skills")
    tool(home, "with.sh", "echo", first="true")
    program(home, "off.disabled", "#!/bin/sh\nexit 9\n")
    program(home, "gone.disabled/gone", "#!/bin/sh\nexit 9\n")
    program(home, "notes.txt", "no program", executable=False)
    program(home, "data/file", "no plugin", executable=False)
    rows = listed(home)
    assert {name: (row["language"], row["state"]) for name, row in rows.items()} == {
        "plain": ("executable", "active"),
        "skills": ("executable", "active"),
        "with": ("executable", "error"),  # the name of its tool has a dot
    }
    assert rows["skills"]["tools"] == ["skill-learn", "skill-list"]


def test_a_script_without_the_executable_bit_is_named(home: HomeDir) -> None:
    for name in ("plain", "in.folder/in.folder", "beside"):
        program(home, name, "#!/bin/sh\nexit 9\n", executable=False)
    program(home, "beside.lua", "cru.log('debug', 'beside')\n", executable=False)
    program(home, "notes", "no script", executable=False)
    os.mkfifo(home.cru / "plugins" / "pipe")
    rows = listed(home)
    assert {name: row["state"] for name, row in rows.items()} == {
        "beside": "active",
        "plain": "error",
        "in.folder": "error",
    }
    file = home.cru / "plugins" / "plain"
    assert rows["plain"]["error"] == f"{file} is not executable: chmod +x {file} (or call it plain.disabled)"
    script(home, "fine")
    run = cru("go", home=home)
    assert run.code == 0 and f"cru: plugin plain is not loaded: {file} is not executable: chmod +x" in run.err
    file.rename(file.with_suffix(".disabled"))
    assert "plain" not in listed(home)


@pytest.mark.slow
def test_every_shape_that_people_write_is_loaded(home: HomeDir) -> None:
    names = [path.name for path in SHAPES.iterdir() if path.is_dir() or os.access(path, os.X_OK)]
    shape(home, *names)
    rows = listed(home)
    assert {name: row["state"] for name, row in rows.items()} == dict.fromkeys(names, "active")
    assert all(row["tools"] for row in rows.values())


@pytest.mark.slow
def test_a_link_is_followed_and_the_program_runs_at_its_own_place(home: HomeDir, tmp_path: Path) -> None:
    shape(home, "skills")
    (home.cru / "plugins" / "skills").rename(tmp_path / "elsewhere")
    (home.cru / "plugins" / "skills").symlink_to(tmp_path / "elsewhere" / "skills")
    assert calls(home, 'skill-learn {"name": "juggling"}', "skill-list").code == 0
    assert results(home) == ["learnt juggling\n", "juggling\n"]
    assert (tmp_path / "elsewhere" / "known.txt").read_text() == "juggling\n"


def test_two_of_one_name_are_an_error_that_names_both(home: HomeDir) -> None:
    tool(home, "same", "echo")
    program(home, "same.lua", "", executable=False)
    row = listed(home)["same"]
    assert row["state"] == "error"
    assert "two plugins are called same" in row["error"] and "same.lua" in row["error"]


def test_a_python_file_with_the_executable_bit_is_never_imported(home: HomeDir, tmp_path: Path) -> None:
    mark = tmp_path / "imported"
    source = f"#!/usr/bin/env python3\nimport sys\nif '--schema' not in sys.argv: open({str(mark)!r}, 'w')\n"
    program(home, "snake.py", source + 'print(\'{"name": "snake", "description": "hisses"}\')\n')
    row = listed(home)["snake"]
    assert (row["language"], row["tools"]) == ("executable", ["snake"])
    assert not mark.exists()


def test_a_manifest_may_stand_beside_a_program(home: HomeDir) -> None:
    shape(home, "skills")
    program(home, "skills/plugin.yaml", "version: '1.2'\n", executable=False)
    row = listed(home)["skills"]
    assert (row["language"], row["state"], row["version"]) == ("executable", "active", "1.2")


def test_one_can_be_switched_off(home: HomeDir) -> None:
    tool(home, "off", "echo")
    home.configure("[plugins.off]\nenabled = false\n")
    assert listed(home)["off"]["state"] == "disabled"


def test_a_project_s_programs_run_only_once_it_is_trusted(home: HomeDir) -> None:
    made = tool(home, "theirs", "echo from the project")
    folder = home.project / ".cru" / "plugins"
    folder.mkdir(parents=True)
    made.rename(folder / "theirs")
    row = listed(home)["theirs"]
    assert (row["language"], row["state"]) == ("executable", "untrusted")
    run = calls(home, "theirs")
    assert "1 plugin of this project is not loaded" in run.err and "no tool `theirs`" in results(home)[-1]
    with pty("trust", home=home) as terminal:
        terminal.expect("accept this? [y/N]")
        terminal.line("y")
        terminal.wait()
    calls(home, "theirs", flags=("-C", "other"))
    assert results(home, "other") == ["from the project\n"]


def test_reload_asks_a_changed_program_again(home: HomeDir) -> None:
    tool(home, "turns", "echo first")

    def change(done: int) -> Reply:
        return Reply(f"reply {done}")

    with server([change(1), Reply(calls=[Call("turned")]), change(2)]) as model:
        home.configure(url=model.url)
        with pty("-t", home=home) as terminal:
            terminal.expect("> ")
            tool(home, "turns", "echo second").write_text(
                (home.cru / "plugins" / "turns").read_text().replace('"turns"', '"turned"')
            )
            terminal.line("/plugin reload turns")
            terminal.expect("> ")
            terminal.line("one")
            terminal.expect("reply 1")
            terminal.line("two")
            terminal.expect("reply 2")
            assert terminal.eof() == 0
        offered = [tool["function"]["name"] for tool in model.requests[0].body["tools"]]
    assert "turned" in offered and "turns" not in offered
    assert results(home) == ["second\n"]


def test_a_reload_with_a_broken_schema_leaves_nothing_behind_and_is_told(home: HomeDir) -> None:
    tool(home, "breaks", "echo first")
    program(home, "watcher.lua", 'cru.on("message:received", function() end)', executable=False)
    with server([Reply("hello")]) as model:
        home.configure(url=model.url)
        with pty("-t", home=home) as terminal:
            terminal.expect("> ")
            program(home, "breaks", "#!/bin/sh\necho nonsense\n")
            terminal.line("/plugin reload breaks")
            terminal.expect("`--schema` does not print JSON")
            terminal.line("one")
            terminal.expect("hello")
            assert terminal.eof() == 0
        offered = [tool["function"]["name"] for tool in model.requests[0].body["tools"]]
    assert "breaks" not in offered


def test_watching_loads_what_comes_and_unloads_what_goes(home: HomeDir) -> None:
    tool(home, "early", "echo")
    with server([Reply("one"), Reply("two")]) as model:
        home.configure("[plugins]\nwatch = true\n", url=model.url)
        with pty("-t", home=home) as terminal:
            terminal.expect("> ")
            terminal.line("first")
            terminal.expect("one")
            tool(home, "late", "echo")
            (home.cru / "plugins" / "early").unlink()
            terminal.line("second")
            terminal.expect("two")
            assert terminal.eof() == 0
        offered = [{tool["function"]["name"] for tool in request.body["tools"]} for request in model.requests]
    assert "early" in offered[0] and "late" not in offered[0]
    assert "late" in offered[1] and "early" not in offered[1]


def test_the_list_of_plugins_as_text(home: HomeDir) -> None:
    shape(home, "read_file")
    run = cru("plugin", "list", home=home)
    assert "read_file" in run.out and "executable" in run.out and "read_lines" in run.out
