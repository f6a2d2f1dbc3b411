"""Context of hooks that waits for the next request, whichever process makes it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.kit.home import home
from tests.kit.pty import pty
from tests.kit.run import cru
from tests.kit.server import server
from tests.kit.steps import Received, Reply

from cru.core.hooks.deferred import FILE, DeferredContext

SETTINGS = {
    "hooks": {
        "SessionStart": [
            {"matcher": "compact", "hooks": [{"type": "command", "command": "echo REMEMBER kit-key-of-mine"}]}
        ]
    }
}


def test_texts_come_once_and_in_order_in_another_process_too(tmp_path: Path) -> None:
    texts = DeferredContext(tmp_path)
    assert texts.take() == ()
    texts.add(())
    assert not (tmp_path / FILE).exists()
    texts.add(("a\nb", "é"))
    DeferredContext(tmp_path).add(("c",))
    assert (tmp_path / FILE).stat().st_mode & 0o077 == 0
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"text": "to')
    texts.add(("d",))
    assert DeferredContext(tmp_path).take() == ("a\nb", "é", "c", "d")
    assert texts.take() == () and not (tmp_path / FILE).exists()


@pytest.mark.slow
def test_what_is_said_after_a_compaction_by_hand_reaches_the_next_run(tmp_path: Path) -> None:
    here = home(tmp_path)
    settings = here.path / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_bytes(msgspec.json.encode(SETTINGS))

    def reply(request: Received) -> Reply:
        return Reply("they talked")

    with server(reply) as model:
        here.configure('api_key = "kit-key-of-mine"\n[hooks]\ndialects = ["claude"]\n', model.url)
        assert [cru(words, home=here).code for words in ("one", "two", "-z")] == [0, 0, 0]
        waiting = (here.context() / FILE).read_text()
        assert "REMEMBER" in waiting and "kit-key-of-mine" not in waiting
        assert not any("REMEMBER" in str(request.body) for request in model.requests)
        assert cru("three", home=here).code == 0
        assert "SessionStart:compact hook success: REMEMBER" in str(model.requests[-1].body)
        assert cru("four", home=here).code == 0
        assert str(model.requests[-1].body).count("REMEMBER") <= 1
    assert not (here.context() / FILE).exists()


def test_a_hook_wakes_an_idle_chat(tmp_path: Path) -> None:
    here = home(tmp_path)
    command = "test -e asked && exit 0; touch asked; echo WAKE UP >&2; exit 2"
    stop = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command, "asyncRewake": True}]}]}}
    settings = here.path / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_bytes(msgspec.json.encode(stop))
    with server([Reply("fine"), Reply("awake")]) as model:
        here.configure('[hooks]\ndialects = ["claude"]\n', model.url)
        with pty(home=here) as terminal:
            terminal.line("hello")
            terminal.expect("WAKE UP (the model reads this now)")
            terminal.expect("awake")
            terminal.line("/quit")
            terminal.wait()
        assert "Stop hook feedback:" in str(model.requests[1].body) and "WAKE UP" in str(model.requests[1].body)
