"""`cru.sessions` in the chat: what a script sends to an idle agent, and questions of the agents that a script talks with."""

from __future__ import annotations

from pathlib import Path

from tests.core.agents.support import script
from tests.kit import HomeDir, home, pty


def configured(tmp_path: Path, plugin: str, main: str) -> HomeDir:
    made = home(tmp_path)
    (made.cru / "plugins").mkdir(parents=True)
    (made.cru / "plugins" / "talk.lua").write_text(plugin)
    made.configure(f'model = "{script(tmp_path, "main", main)}"\n')
    return made


def test_a_message_of_a_script_wakes_the_agent_that_waits_for_a_person(tmp_path: Path) -> None:
    plugin = (
        "cru.spawn(function()\n"
        "  while not cru.fs.exists('go') do cru.timer.sleep(0.02) end\n"
        "  cru.sessions.send_message(nil, 'the build is red')\nend)\n"
    )
    here = configured(tmp_path, plugin, "text: hello to you\n---\ntext: I mend it\n---\ntext: bye\n")
    with pty(home=here) as terminal:
        terminal.expect("> ")
        terminal.line("hello")
        terminal.expect("hello to you")
        terminal.expect("> ")
        (here.project / "go").touch()
        terminal.expect("I mend it")
        terminal.line("good")
        terminal.expect("bye")
        assert terminal.eof() == 0
    prompts = [entry["content"] for entry in here.log() if entry.get("role") == "user"]
    assert prompts == ["hello", "the build is red", "good"]


def test_a_question_of_its_agent_comes_to_the_person_in_its_name(tmp_path: Path) -> None:
    child = script(tmp_path, "child", 'call: write {"file_path": "x", "content": "y"}\n---\ntext: written\n')
    plugin = (
        "cru.on('turn:complete', function()\n"
        f"  local s = assert(cru.sessions.create({{ model = '{child}' }}))\n"
        "  for part in cru.sessions.send_and_collect(s.id, 'write it') do\n"
        "    if part.type == 'text' then cru.toast('it says ' .. part.content) end\n  end\nend)\n"
    )
    here = configured(tmp_path, plugin, "text: hello to you\n")
    with pty(home=here) as terminal:
        terminal.expect("> ")
        terminal.line("hello")
        terminal.expect("[sub-agent general ")
        terminal.expect("write: x")
        terminal.expect("no > ")
        terminal.line("y")
        terminal.expect("it says written")
        assert terminal.eof() == 0
    assert (here.project / "x").read_text() == "y"
