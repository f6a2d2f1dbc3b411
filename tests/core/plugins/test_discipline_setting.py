"""`[discipline] use`, `--discipline` and `/discipline`: one word turns on what keeps the agent at its work."""

from __future__ import annotations

import os

import pytest
from tests.kit import HomeDir, Reply, cru, pty, server

from cru.core.base.bundled import PLUGINS
from cru.core.plugins import DISCIPLINES, DisciplineSettings, PluginSettings

OPEN = Reply("- [ ] port it")
LAST = "cru: gave up: todo-enforcer: no progress: the same todos are open after 3 reminders; open: port it"


def test_every_discipline_is_a_plugin_that_comes_with_cru_or_has_a_table() -> None:

    bundled = set(os.listdir(PLUGINS))
    assert {plugin for plugin in DISCIPLINES.values() if plugin} < bundled
    assert [name for name, plugin in DISCIPLINES.items() if not plugin] == ["verify"]


def test_the_table_of_a_plugin_wins_over_the_word() -> None:
    use = DisciplineSettings(("todos", "ralph", "verify"))
    tables = PluginSettings({"todo-enforcer": {"max": 2}, "ralph-loop": {"enabled": False}}, discipline=use).plugins
    assert tables == {"todo-enforcer": {"enabled": True, "max": 2}, "ralph-loop": {"enabled": False}}
    assert PluginSettings().plugins == {}


@pytest.mark.parametrize(
    "argv", [("--discipline", "todos"), ("-s", 'discipline.use=["todos"]'), ()], ids=["flag", "set", "file"]
)
def test_each_way_turns_it_on(home: HomeDir, argv: tuple[str, ...]) -> None:
    with server(lambda _request: OPEN) as model:
        home.configure("" if argv else '[discipline]\nuse = ["todos"]\n', url=model.url)
        done = cru(*argv, "go", home=home)
    assert (done.code, done.err.splitlines()[-1]) == (3, LAST)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--discipline", "todoz", "go"), "`discipline.use[0]`: invalid enum value 'todoz'"),
        (("--discipline", "verify", "go"), "[discipline] use: `verify` needs a command\n  set `[verify] command ="),
    ],
)
def test_a_word_that_means_nothing_is_an_error(home: HomeDir, argv: tuple[str, ...], message: str) -> None:
    home.configure('model = "scripted:nowhere"\n')
    done = cru(*argv, home=home)
    assert done.code == 1 and message in done.err, done


def test_a_projects_word_waits_for_trust(home: HomeDir) -> None:
    (home.project / ".cru").mkdir()
    (home.project / ".cru" / "config.toml").write_text('[discipline]\nuse = ["todos"]\n')
    with server(lambda _request: OPEN) as model:
        home.configure(url=model.url)
        done = cru("go", home=home)
    assert done.code == 0 and len(model.requests) == 1 and "cru trust" in done.err, done


def test_the_chat_turns_it_on_and_off(home: HomeDir) -> None:
    with server([]) as model:
        home.configure('[discipline]\nuse = ["plan"]\n', url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("/discipline")
            terminal.expect("todos: off (todo-enforcer)")
            terminal.expect("plan: on (plan-mode)")
            terminal.line("/discipline todos")
            terminal.expect("todos: on (todo-enforcer)")
            terminal.line("/discipline plan off")
            terminal.expect("plan: off (plan-mode)")
            terminal.line("/discipline tods")
            terminal.expect("did you mean `todos`?")
            assert terminal.eof() == 0
