"""What changes in the vault is heard by handlers in every language: what cru wrote, and what others write while a chat goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.features.vault.support import write_notes
from tests.kit import HomeDir, cru, home, pty
from tests.kit.waiting import wait_until

EVENTS = ("file:changed", "note:parsed", "note:created", "note:modified", "note:deleted", "note:renamed")
LUA = """
for _, name in ipairs({ %s }) do
  cru.on(name, function(ctx, e)
    local null = cru.json.null
    local row = { name, e.path or null, e.kind or e.title or e.change_type or null, e.from or null, e.to or null }
    cru.fs.append("%s", cru.json.encode(row) .. "\\n")
  end)
end
"""
PYTHON = """
import json
from cru import on
def setup(cru):
    for name in %s:
        def heard(ctx, event):
            with open(%r, "a") as file:
                file.write(json.dumps([event["type"], event["path"]]) + "\\n")
        on(name, heard)
"""


@pytest.fixture
def here(tmp_path: Path) -> HomeDir:
    made = home(tmp_path)
    write_notes(made.path / "notes", {"Home.md": "See [[Retry]].\n", "Retry.md": "Again.\n", "Gone.md": "soon\n"})
    (made.cru / "plugins").mkdir(parents=True)
    (made.cru / "plugins" / "listen.lua").write_text(LUA % (", ".join(map(json.dumps, EVENTS)), made.path / "lua.txt"))
    return made


def configure(here: HomeDir, *turns: str) -> None:
    (here.path / "model.txt").write_text("by: order\n" + "\n---\n".join(turns) + "\n")
    here.configure(f'model = "scripted:{here.path}/model.txt"\nmode = "trust"\n[vault]\npath = "~/notes"\n')


def heard(here: HomeDir) -> list[list[str | None]]:
    file = here.path / "lua.txt"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def write(path: str, content: str, *, overwrite: bool = False) -> str:
    return f"call: vault_write {json.dumps({'path': path, 'content': content, 'overwrite': overwrite})}"


def test_what_the_model_writes_is_heard_and_what_was_there_before_is_not(here: HomeDir) -> None:
    configure(
        here,
        write("New", "see [[Home]]\n"),
        write("New", "---\na: 1\n---\nsee [[Home]]\n", overwrite=True),
        "text: done",
    )
    done = cru("go", home=here)
    assert (done.code, done.out, done.err.count("not available")) == (0, "done\n", 0)
    assert heard(here) == [
        ["file:changed", "New.md", "created", None, None],
        ["note:parsed", "New.md", None, None, None],
        ["note:created", "New.md", "New", None, None],
        ["file:changed", "New.md", "modified", None, None],
        ["note:parsed", "New.md", None, None, None],
        ["note:modified", "New.md", "frontmatter", None, None],
    ]


def test_of_what_happened_between_runs_only_what_is_gone_is_heard(here: HomeDir) -> None:
    configure(here, 'call: vault_search {"query": "again"}', "text: done")
    assert cru("go", home=here).code == 0 and heard(here) == []
    (here.path / "notes" / "Gone.md").unlink()
    (here.path / "notes" / "Retry.md").write_text("Changed.\n")
    assert cru("go", home=here).code == 0
    assert heard(here) == [
        ["file:changed", "Gone.md", "deleted", None, None], ["note:deleted", "Gone.md", None, None, None],
    ]  # fmt: skip


def test_a_handler_in_python_and_a_command_hook_hear_it_too(here: HomeDir) -> None:
    (here.cru / "plugins" / "also.py").write_text(PYTHON % (EVENTS, str(here.path / "python.txt")))
    hooks = [
        {"event": name, "command": f"cat >> {here.path}/hook.txt; echo >> {here.path}/hook.txt"} for name in EVENTS
    ]
    (here.cru / "hooks.json").write_text(json.dumps({"hooks": hooks}))
    configure(here, write("New", "x"), "text: done")
    done = cru("--hooks", "all", "go", home=here)
    assert (done.code, done.out) == (0, "done\n"), done
    expected = ["file:changed", "note:parsed", "note:created"]
    assert [json.loads(line) for line in (here.path / "python.txt").read_text().splitlines()] == [
        [name, "New.md"] for name in expected
    ]
    inputs = [json.loads(line) for line in (here.path / "hook.txt").read_text().splitlines() if line.strip()]
    assert [entry.get("event") or entry.get("hook_event_name") for entry in inputs] == expected
    assert all("New.md" in json.dumps(entry) for entry in inputs)


@pytest.mark.slow
def test_a_chat_hears_what_others_change_and_its_own_writes_once(here: HomeDir) -> None:
    configure(here, write("Mine", "mine\n"), "text: it is written", "text: bye")
    notes = here.path / "notes"
    with pty(home=here) as terminal:
        terminal.expect("> ")
        terminal.line("write")
        terminal.expect("it is written")
        number = 0

        def is_watched() -> bool:  # nothing says when it is, so what it must see is done until it saw it
            nonlocal number
            number += 1
            (notes / "Probe.md").write_text(f"{number}\n")
            return any(row[1] == "Probe.md" for row in heard(here))

        wait_until(is_watched)
        (notes / "Gone.md").rename(notes / "Moved.md")
        (notes / "picture.png").write_bytes(b"1")
        (notes / ".hidden.md").write_text("x")
        wait_until(lambda: ["note:renamed", None, None, "Gone.md", "Moved.md"] in heard(here))
        wait_until(lambda: ["file:changed", "picture.png", "created", None, None] in heard(here))
        terminal.line("bye")
        terminal.expect("bye")
        assert terminal.eof() == 0
    rows = heard(here)
    assert rows.count(["note:created", "Mine.md", "Mine", None, None]) == 1
    assert rows.count(["note:created", "Moved.md", "Moved", None, None]) == 1
    assert rows.count(["note:deleted", "Gone.md", None, None, None]) == 1
    assert not any(".hidden.md" in row for row in rows)


def test_a_vault_that_goes_while_it_is_watched_ends_nothing(here: HomeDir) -> None:
    configure(here, write("Mine", "mine\n"), "text: it is written", "text: bye")
    with pty(home=here) as terminal:
        terminal.expect("> ")
        terminal.line("write")
        terminal.expect("it is written")
        (here.path / "notes").rename(here.path / "away")
        terminal.line("go on")
        terminal.expect("bye")
        assert terminal.eof() == 0
    assert "Traceback" not in terminal.text
