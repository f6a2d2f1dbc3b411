"""The guide that comes with cru: a model reads it without a question, and what its examples say is true."""

from __future__ import annotations

import re
from pathlib import Path

from tests.kit import HomeDir, cru

from cru.bundled.prompts import BASE, GUIDES

GUIDE = Path(GUIDES) / "plugins.md"


def examples() -> list[str]:
    return re.findall(r"```lua\n(.*?)```", GUIDE.read_text(), re.DOTALL)


def install(home: HomeDir, script: str) -> None:
    plugins = home.cru / "plugins"
    plugins.mkdir(parents=True)
    for number, text in enumerate(examples()):
        (plugins / f"example{number}.lua").write_text(text)
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
