"""The chat's prompt is drawn before the chat is loaded; whatever is typed before, meanwhile and afterwards arrives once and in order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.kit import HomeDir, Reply, Terminal, pty, server
from tests.kit.scripts import shebang
from tests.kit.waiting import wait_until

from cru.faces.cli import entry
from cru.faces.cli.flags import parse

pytestmark = pytest.mark.real_start

WAITING = """{shebang}import os, sys, time

class Gate:
    def find_spec(self, name, path=None, target=None):
        if name in {modules}:
            while not os.path.exists(name):
                time.sleep(0.01)

sys.meta_path.insert(0, Gate())
from cru.faces.cli.main import main
main()
"""
REPORTING = """{shebang}import io, os, sys

class Stream(io.TextIOWrapper):
    def write(self, text):
        if text.endswith("> ") and not os.path.exists("modules.txt"):  # the first one: Ctrl-D may have it drawn again
            with open("modules.txt", "w") as file:
                file.write(" ".join(set(sys.modules) - before))
        return super().write(text)

before = set(sys.modules)
sys.stderr = Stream(sys.stderr.detach(), "utf-8", write_through=True)
from cru.faces.cli.main import main
main()
"""
BEFORE, LOADING, MEANWHILE = "cru.faces.cli.main", "cru.faces.cli.run", "cru.faces.cli.chat.chat"
OWN, ALL = 34, 121


def script(home: HomeDir, source: str, **names: object) -> Path:
    path = home.path / "chat"
    path.write_text(source.format(shebang=shebang(), **names))
    path.chmod(0o755)
    return path


def held(home: HomeDir, *modules: str) -> Terminal:
    """A chat that does not load these modules before `go`."""
    return pty(home=home, script=script(home, WAITING, modules=modules), is_first_prompt_enough=True)


def go(home: HomeDir, module: str) -> None:
    (home.project / module).touch()


def prompts(home: HomeDir) -> list[str]:
    return [entry["content"] for entry in home.log("default") if entry.get("role") == "user"]


KEYS = {
    "lines": (b"one\rtwo\r", ["one", "two"]),
    "characters of several bytes": (
        "h\u00e9llo \u65e5\u672c \U0001f642\r".encode(),
        ["h\u00e9llo \u65e5\u672c \U0001f642"],
    ),
    "arrow keys": (b"hllo\x1b[D\x1b[D\x1b[De\r", ["hello"]),
    "pasted lines": (b"\x1b[200~one\ntwo\x1b[201~ three\r", ["one\ntwo three"]),
    "Alt-Enter": (b"one\x1b\rtwo\r", ["one\ntwo"]),
}


def read_by_the_chat(home: HomeDir, before: bytes, meanwhile: bytes, afterwards: bytes = b"") -> list[str]:
    """The prompts that these keys are, each of which has an answer."""
    with server(lambda request: Reply("answered")) as model:
        home.configure(url=model.url)
        with held(home, BEFORE, MEANWHILE) as terminal:
            terminal.send_bytes(before)
            go(home, BEFORE)
            terminal.expect("> ")
            terminal.send_bytes(meanwhile)
            go(home, MEANWHILE)
            if afterwards:
                terminal.expect("> ")
                terminal.send_bytes(afterwards)
            terminal.expect("answered")
            assert terminal.eof() == 0
            assert terminal.is_cooked()
    return prompts(home)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KEYS)
def test_keys_typed_while_the_chat_is_loaded(home: HomeDir, kind: str) -> None:
    keys, expected = KEYS[kind]
    assert read_by_the_chat(home, b"", keys) == expected


def test_what_is_typed_while_cru_starts_is_shown_at_the_prompt_alone(home: HomeDir) -> None:
    with server([Reply("answered")]) as model:
        home.configure(url=model.url)
        with held(home, LOADING) as terminal:
            wait_until(lambda: not terminal.is_cooked())
            terminal.send_bytes(b"first words\r")
            go(home, LOADING)
            terminal.expect("answered")
            assert terminal.eof() == 0
            assert terminal.is_cooked()
    assert prompts(home) == ["first words"]
    assert terminal.text.count("> first words") == 1 and terminal.text.startswith("cru in the context")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_cru_starts_gives_the_terminal_back(home: HomeDir, number: signal.Signals) -> None:
    with held(home, LOADING) as terminal:
        wait_until(lambda: not terminal.is_cooked())
        os.kill(terminal.pid, number)
        assert terminal.wait() == (130 if number == signal.SIGINT else -number)
        assert terminal.is_cooked()


@pytest.mark.parametrize("argv", [("hi",), ("-x",), ("-d",), ("-c", "x", "-d"), ("--json",), ("--resume",)])
def test_where_no_chat_opens_the_terminal_stays_as_it_is(
    monkeypatch: pytest.MonkeyPatch, argv: tuple[str, ...]
) -> None:
    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    assert entry._is_chat(parse(["-c", "x"])) and not entry._is_chat(parse(argv))


# A terminal marks what is pasted when it was asked to: at the prompt.
@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KEYS if kind != "pasted lines"])
def test_keys_typed_before_the_start(home: HomeDir, kind: str) -> None:
    keys, expected = KEYS[kind]
    assert read_by_the_chat(home, keys, b"") == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "at"),
    [("lines", 6), ("characters of several bytes", 2), ("characters of several bytes", 9), ("arrow keys", 6)],
)
def test_a_key_of_which_the_start_comes_in_the_middle(home: HomeDir, kind: str, at: int) -> None:
    keys, expected = KEYS[kind]
    assert read_by_the_chat(home, keys[:at], keys[at:]) == expected


@pytest.mark.slow
def test_a_line_of_which_a_part_is_typed_before_meanwhile_and_afterwards(home: HomeDir) -> None:
    assert read_by_the_chat(home, b"one ", b"t\x7ftw", b"o\r") == ["one two"]


@pytest.mark.slow
def test_ctrl_c_while_the_chat_is_loaded_clears_what_was_typed_before_it(home: HomeDir) -> None:
    with server([Reply("answer")]) as model:
        home.configure(url=model.url)
        with held(home, MEANWHILE) as terminal:
            terminal.expect("> ")
            terminal.send("never sent\x03sent\r")
            go(home, MEANWHILE)
            terminal.expect("answer")
            assert terminal.eof() == 0
    assert prompts(home) == ["sent"]


@pytest.mark.slow
@pytest.mark.parametrize("module", [BEFORE, MEANWHILE])
def test_ctrl_d_leaves_whenever_it_is_typed(home: HomeDir, module: str) -> None:
    with held(home, module) as terminal:
        if module == MEANWHILE:
            terminal.expect("> ")
        terminal.key("c-d")
        go(home, module)
        assert terminal.wait() == 0
        assert terminal.is_cooked()
    assert "this conversation: cru -C default\n" in terminal.text and prompts(home) == []


@pytest.mark.slow
def test_the_prompt_stands_once_on_the_screen_with_what_was_typed(home: HomeDir) -> None:
    with held(home, MEANWHILE) as terminal:
        terminal.expect("> ")
        assert not terminal.is_cooked()
        terminal.send("typed")
        go(home, MEANWHILE)
        terminal.expect_screen("> typed")
        lines = [line.rstrip() for line in terminal.screen().splitlines()]
        assert lines[0].startswith("cru in the context default.") and lines[-2:] == [
            "> typed",
            "project · ask · sandbox off",
        ]
        assert sum(line.startswith(">") for line in lines) == 1
        terminal.key("c-c")
        assert terminal.eof() == 0


@pytest.mark.slow
def test_the_beginning_of_a_line_typed_before_the_start_stands_in_the_prompt_only(home: HomeDir) -> None:
    with held(home, BEFORE) as terminal:
        terminal.send("typed")
        terminal.expect("typed")  # the terminal shows it
        go(home, BEFORE)
        terminal.expect("/help says more.")
        terminal.expect_screen("> typed")
        assert terminal.screen().count("typed") == 1
        terminal.key("c-c")
        assert terminal.eof() == 0


@pytest.mark.slow
def test_a_warning_takes_the_place_of_the_prompt_which_comes_again(home: HomeDir) -> None:
    home.configure("")
    (home.cru / "state.json").write_text("{")
    with held(home, MEANWHILE) as terminal:
        terminal.expect("> ")
        go(home, MEANWHILE)
        terminal.expect("state.json")
        terminal.send("typed")
        terminal.expect_screen("> typed")
        lines = [line.rstrip() for line in terminal.screen().splitlines()]
        assert sum(line.startswith(">") for line in lines) == 1 and lines[-2:] == [
            "> typed",
            "project · ask · sandbox off",
        ]
        terminal.key("c-c")
        assert terminal.eof() == 0


def test_an_error_of_the_start_takes_the_place_of_the_prompt(home: HomeDir) -> None:
    home.configure("model = [\n")
    with held(home, MEANWHILE) as terminal:
        terminal.expect("> ")
        go(home, MEANWHILE)
        assert terminal.wait() == 1
        assert "config.toml:1: not TOML" in terminal.text.replace("\n", "") and ">" not in terminal.screen()
        assert terminal.is_cooked()


@pytest.mark.sample(2)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_during_the_start_leaves_the_terminal_as_it_was(home: HomeDir, number: signal.Signals) -> None:
    with held(home, MEANWHILE) as terminal:
        terminal.expect("> ")
        subprocess.run(["kill", f"-{number}", str(terminal.pid)], check=True)
        assert terminal.wait() == 128 + number
        assert terminal.is_cooked() and ">" not in terminal.screen()


def test_little_is_loaded_before_the_prompt_is_drawn(home: HomeDir) -> None:
    env = {"TMPDIR": str(home.path)}  # a start clears away what runs that keep nothing have left in a shared folder
    with pty(home=home, script=script(home, REPORTING), is_first_prompt_enough=True, env=env) as terminal:
        terminal.expect("> ")
        assert terminal.eof() == 0
    modules = set((home.project / "modules.txt").read_text().split())
    own = {name for name in modules if name.split(".")[0] == "cru"}
    assert not modules & {"asyncio", "prompt_toolkit", "rich", "logging", "inspect", "subprocess"}
    later = ("compose", "turn", "events", "models.registry", "tools", "plugins")
    assert not own & {f"cru.core.{name}" for name in later}
    assert len(own) <= OWN and len(modules) <= ALL, sorted(modules)
