"""Hostile plugins in Lua and Python, within cru's own process, through the real command (plugins.py is the table)."""

from __future__ import annotations

import textwrap

import pytest
from tests.hostile import checks
from tests.hostile.plugins import PLUGIN_ROWS
from tests.kit import Call, HomeDir, Received, Reply, cru, server

LANGUAGES = {"lua": "lua", "python": "py"}
ROWS = [(name, language) for name, row in PLUGIN_ROWS.items() for language in LANGUAGES if getattr(row, language)]
SHORT = [(name, language) for name, language in ROWS if PLUGIN_ROWS[name].short]


def plugin(language: str, code: str) -> str:
    if language == "lua":
        return f'cru.on("message:received", function(ctx, event)\nif event.content ~= "hello" then return end\n{code}\nend)\n'
    head = "import asyncio, os, resource, sys, time\nimport cru\n"
    note = "def note(pid):\n    with open(os.environ['HOME'] + '/../pids', 'a') as file: file.write(f'{pid}\\n')\n"
    body = textwrap.indent(code, "    ")
    kind = "async def" if "await" in code else "def"
    return f"{head}{note}{kind} f(ctx, event):\n    if event['content'] != 'hello': return\n{body}\ncru.on('message:received', f)\n"


def works(request: Received) -> Reply:
    """Once something is made by a tool of cru and by a command, in the project."""
    last = request.body["messages"][-1]
    if last["role"] == "tool" or "again" in str(last["content"]):
        return Reply("all is well")
    return Reply(
        calls=[Call("write", {"file_path": "made/a.txt", "content": "x"}), Call("bash", {"command": "echo > b.txt"})]
    )


def check(home: HomeDir, name: str, language: str) -> None:
    row = PLUGIN_ROWS[name]
    with server(works) as model:
        home.configure('mode = "trust"\n', model.url)
        file = home.cru / "plugins" / f"bad.{LANGUAGES[language]}"
        file.parent.mkdir()
        file.write_text(plugin(language, getattr(row, language)))
        done = cru("hello", home=home)
        print(str(done)[:3000])
        try:
            checks.check_messages(done, row.codes, passed_on=1 << 20, may_be_defect=row.is_defect)
            said = done.err.replace(str(home.path.parent), "")
            assert not row.told or any(text in said for text in row.told), said[:3000]
            # no command can start with the memory that "limits memory" leaves
            if done.code == 0 and "becomes" not in name and name != "limits memory":
                assert (home.project / "made" / "a.txt").read_text() == "x" and (home.project / "b.txt").exists()
            checks.check_processes(home)
        finally:
            checks.kill_started(home)
        file.unlink()
        home.project.mkdir(exist_ok=True)
        checks.check_next_run(home)
    checks.check_log(home, ["hello", "again"])
    checks.check_files(home)


@pytest.mark.sample(1)
@pytest.mark.parametrize(("name", "language"), SHORT)
def test_short(home: HomeDir, name: str, language: str) -> None:
    check(home, name, language)


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.parametrize(("name", "language"), ROWS)
def test_all(home: HomeDir, name: str, language: str) -> None:
    check(home, name, language)
