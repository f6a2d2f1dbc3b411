"""`cru plugin adopt-chibi`: the home under the name that old plugins know."""

from __future__ import annotations

from pathlib import Path

from tests.kit import HomeDir, cru


def link(home: HomeDir) -> Path:
    return home.path / ".chibi"


def test_the_home_gets_its_old_name_once(home: HomeDir) -> None:
    run = cru("plugin", "adopt-chibi", home=home)
    assert run.code == 0 and run.err == "" and f"{link(home)} leads to {home.cru} now" in run.out
    assert link(home).is_symlink() and link(home).resolve() == home.cru and home.cru.is_dir()
    again = cru("plugin", "adopt-chibi", home=home)
    assert again.code == 0 and "already" in again.out
    undone = cru("plugin", "adopt-chibi", "--undo", home=home)
    assert undone.code == 0 and f"{home.cru} stays" in undone.out
    assert not link(home).is_symlink() and home.cru.is_dir()
    assert cru("plugin", "adopt-chibi", "--undo", home=home).code == 0


def test_another_home_can_be_adopted(home: HomeDir) -> None:
    other = home.path / "elsewhere"
    assert cru("--home", str(other), "plugin", "adopt-chibi", home=home).code == 0
    assert link(home).resolve() == other
    refused = cru("plugin", "adopt-chibi", home=home)
    assert refused.code == 1 and f"leads to {other} already" in refused.err and "\n  " in refused.err
    assert cru("plugin", "adopt-chibi", "--undo", home=home).code == 1
    assert link(home).resolve() == other


def test_a_real_folder_is_left_alone(home: HomeDir) -> None:
    link(home).mkdir()
    (link(home) / "state.json").write_text("{}")
    for words in (("adopt-chibi",), ("adopt-chibi", "--undo")):
        run = cru("plugin", *words, home=home)
        assert run.code == 1 and run.out == "" and "Traceback" not in run.err
    assert f"cru --home {link(home)}" in cru("plugin", "adopt-chibi", home=home).err
    assert (link(home) / "state.json").read_text() == "{}" and not link(home).is_symlink()
    same = cru("--home", str(link(home)), "plugin", "adopt-chibi", home=home)
    assert same.code == 0 and "already" in same.out
    assert cru("--home", str(link(home)), "plugin", "adopt-chibi", "--undo", home=home).code == 1


def test_a_dangling_link_is_somebody_elses(home: HomeDir) -> None:
    link(home).symlink_to(home.path / "gone")
    run = cru("plugin", "adopt-chibi", home=home)
    assert run.code == 1 and "gone already" in run.err and link(home).is_symlink()


def test_words_that_do_not_fit_are_refused(home: HomeDir) -> None:
    for words in (("adopt-chibi", "me"), ("adopt-chibi", "--udno"), ("adopt-chiib",)):
        run = cru("plugin", *words, home=home)
        assert run.code == 2 and run.out == ""
    assert "adopt-chibi" in run.err and not link(home).exists()


def test_a_plugin_that_looks_there_finds_the_contexts(home: HomeDir) -> None:
    plugin = home.cru / "plugins" / "peek"
    plugin.parent.mkdir(parents=True)
    plugin.write_text(
        '#!/bin/bash\nif [[ $1 == --schema ]]; then echo \'{"name": "peek", "description": "d"}\'; exit; fi\n'
        'cat "$HOME/.chibi/contexts/default/todos.md"\n'
    )
    plugin.chmod(0o755)
    script = home.project / "model.txt"
    script.write_text('call: update_todos {"content": "buy milk"}\n---\ncall: peek\n---\ntext: ok\n')
    home.configure(f'model = "scripted:{script}"\n')
    said = cru("plugin", "health", home=home).out
    assert f"{link(home)} is not {home.cru}, and peek may look for it there: cru plugin adopt-chibi" in said
    assert cru("plugin", "adopt-chibi", home=home).code == 0
    assert cru("-t", "go", home=home).out == "ok\n"
    assert [e["content"] for e in home.log() if e["entry_type"] == "tool_result"][-1].strip() == "buy milk"
    assert f"{link(home)} leads to {home.cru} (" in cru("plugin", "health", home=home).out


def test_nothing_is_said_where_nothing_looks_there(home: HomeDir) -> None:
    assert ".chibi" not in cru("plugin", "health", home=home).out
