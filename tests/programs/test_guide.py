"""The guide that comes with cru: a model reads it without a question, and what its examples say is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.kit import HomeDir, cru

from cru.core.base.bundled import BASE, GUIDES

GUIDE = Path(GUIDES) / "plugins.md"


def examples(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(), re.DOTALL)


def install(home: HomeDir, script: str, language: str = "lua", suffix: str = "lua") -> None:
    plugins = home.cru / "plugins"
    plugins.mkdir(parents=True)
    for number, text in enumerate(examples(language)):
        (plugins / f"example{number}.{suffix}").write_text(text)
    model = home.project / "model.txt"
    model.write_text(script)
    (home.cru / "config.toml").write_text(f'model = "scripted:{model}"\n')


def test_the_prompt_names_the_guide_and_the_model_may_read_it(home: HomeDir) -> None:
    assert str(GUIDE) in BASE
    install(home, f'by: order\ncall: read {{"file_path": "{GUIDE}"}}\n---\ntext: I know how.\n')
    run = cru("write me a rule", home=home)
    assert run.code == 0 and run.out.strip() == "I know how."
    assert "How to write a plugin for cru" in cru("-g", "0", "-v", home=home).out


def test_its_handler_holds(home: HomeDir) -> None:
    install(home, 'by: order\ncall: bash {"command": "git push"}\n---\ntext: It is yours.\n')
    run = cru("-t", "push it", home=home)
    assert "It is yours." in run.out
    assert "pushing is the user's job" in cru("-g", "0", "-v", home=home).out


def test_its_tool_and_its_command_work(home: HomeDir) -> None:
    install(home, 'by: order\ncall: count_words {"path": "a.txt", "unique": true}\n---\ntext: Counted.\n')
    (home.project / "a.txt").write_text("one two two")
    run = cru("-t", "/review a.txt", home=home)
    assert "Counted." in run.out
    log = cru("-g", "0", "-v", home=home).out
    assert "Review a.txt." in log and "2 words" in log


@pytest.mark.parametrize("call", ["bash {}", "bash"])
def test_its_handler_lets_a_call_without_a_command_reach_the_check_of_arguments(home: HomeDir, call: str) -> None:
    install(home, f"by: order\ncall: {call}\n---\ntext: Oh.\n")
    run = cru("-t", "do it", home=home)
    assert "`command`: required, but missing" in run.err and "example0" not in run.err


@pytest.mark.parametrize(("passes", "denied"), [(True, False), (False, True)])
def test_its_python_works(home: HomeDir, passes: bool, denied: bool) -> None:
    script = 'by: order\ncall: bash {"command": "git  commit --dry-run"}\ncall: double {"n": 4}\n---\ntext: Well.\n'
    install(home, script, "python", "py")
    make = home.path / "bin" / "make"
    make.parent.mkdir()
    make.write_text(f"#!/bin/sh\nexit {0 if passes else 1}\n")
    make.chmod(0o755)
    run = cru("-t", "commit", home=home, env={"PATH": f"{make.parent}:{home.env['PATH']}"})
    log = cru("-g", "0", "-v", home=home).out
    assert run.code == 0 and ("the tests fail" in log) is denied and "[TOOL RESULT: double] 8" in log
    assert cru("/hello you", home=home).out == "hello you\n"
