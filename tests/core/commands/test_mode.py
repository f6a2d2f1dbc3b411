"""/mode, and Shift-Tab in the chat: what a person sets, and what others have set."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.core.commands.test_builtin import LOOP, typed
from tests.core.turn.support import World
from tests.kit import HomeDir, cru, pty, server

from cru.core.commands.mode import next_mode
from cru.core.events.answers import PermissionUpdate, UpdateKind
from cru.core.guard import UnknownMode
from cru.core.guard.rules.updates import take_update


def modes(world: World, presses: int) -> list[str]:
    """The modes after each press of the key."""
    parts = world.session.parts
    return [(next_mode(parts), parts.gate.mode)[1] for _ in range(presses)]


def test_mode_shows_all_of_them_and_why(tmp_path: Path) -> None:
    world = World(tmp_path, LOOP)
    shown = typed(world, "/mode", "/mode trust", "/mode")
    assert "* ask    reads freely" in shown[0] and shown[0].endswith("because of: default")
    assert shown[1] == "mode trust: it allows everything that no rule forbids"
    assert "* trust" in shown[2] and shown[2].endswith("you have set it in this session")
    with pytest.raises(UnknownMode) as caught:
        typed(world, "/mode plann")
    assert "plan" in caught.value.hint and world.session.parts.gate.mode == "trust"


def test_the_key_goes_round_and_never_to_trust(tmp_path: Path) -> None:
    assert modes(World(tmp_path, LOOP), 4) == ["auto", "plan", "ask", "auto"]
    assert modes(World(tmp_path, LOOP, settings={"mode": "trust"}), 1) == ["ask"]


def test_the_key_does_not_loosen_what_a_hook_has_set(tmp_path: Path) -> None:
    world = World(tmp_path, LOOP)
    gate = world.session.parts.gate
    take_update(gate, PermissionUpdate(UpdateKind.MODE, items=("plan",)))
    sentence = next_mode(world.session.parts)
    assert sentence.startswith("the mode stays `plan`: a hook") and gate.mode == "plan"
    assert typed(world, "/mode ask") == [
        "mode ask: it reads freely and asks for the rest (a hook or the agent card has set it)"
    ]
    assert modes(world, 1) == ["auto"]


def test_the_key_does_not_loosen_what_a_plugin_holds(tmp_path: Path) -> None:
    world = World(tmp_path, LOOP)
    world.session.parts.gate.set_mode("plan", "the plugin guard")
    assert "the plugin guard has set it" in next_mode(world.session.parts)
    assert world.session.parts.gate.mode == "plan"


def test_the_key_stays_within_what_the_project_says(home: HomeDir) -> None:
    (home.project / ".cru").mkdir()
    (home.project / ".cru/config.toml").write_text('mode = "ask"\n')
    with server([]) as model:
        home.configure(url=model.url)
        digest = cru("trust", "--show", home=home).out.split()[-1]
        assert cru("trust", "--yes", digest, home=home).code == 0
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.send("draft\x1b[Z")
            terminal.expect("mode plan: it only reads")
            terminal.expect_screen("project · plan")
            terminal.send("\x1b[Z")
            terminal.expect("mode ask")
            terminal.expect_screen("draft\nproject · ask")
            terminal.key("c-c")
            terminal.line("/mode auto")
            terminal.expect("config.toml:1 says so)")
            assert terminal.eof() == 0
