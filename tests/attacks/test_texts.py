"""Characters that a terminal obeys, or that nobody sees, wherever a stranger's text reaches a person: each is shown as its number."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.kit import Call, HomeDir, Reply, cru, home, pty, server
from tests.roads.test_text_attacks import HIDDEN

PLACES = ("an answer", "cru trust", "cru hooks review", "cru mcp list", "a question")
ROWS = [text for text in HIDDEN if not any(char in "\r\u2028\u2029" for char in text)]
"""Those that end a line are rows of the log's and the inbox's tests."""


def _escaped(text: str) -> str:
    """As it is shown in the middle of other letters."""
    from cru.core.base.values.visible import mark_hidden

    return mark_hidden(f"x{text}y")


def _lines() -> list[str]:
    return [f"{number:02d}:x{text}y;" for number, text in enumerate(ROWS)]


def _answer(folder: Path) -> str:
    with server([Reply("\n".join(_lines()))]) as model:
        here = home(folder, url=model.url)
        with pty("--raw", "hello", home=here) as terminal:
            assert terminal.wait() == 0
            return terminal.text


def _trust(folder: Path) -> str:
    here = home(folder)
    (here.project / ".cru/plugins").mkdir(parents=True)
    for number, line in enumerate(_lines()):
        (here.project / f".cru/plugins/p{number:02d}.lua").write_text(f"-- {line}\n")
    return _shown(here, "trust", "--show")


def _hooks(folder: Path) -> str:
    here = home(folder)
    entries = [{"command": f"echo {line}"} for line in _lines()]
    (here.project / "crush.json").write_text(json.dumps({"hooks": {"PreToolUse": entries}}))
    return _shown(here, "hooks", "review")


def _mcp(folder: Path) -> str:
    here = home(folder)
    servers = {f"s{number:02d}": {"command": "echo", "args": [line]} for number, line in enumerate(_lines())}
    (here.project / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    return _shown(here, "mcp", "list")


def _shown(here: HomeDir, *words: str) -> str:
    done = cru(*words, home=here)
    return done.out + done.err


def _question(folder: Path) -> str:
    with server(
        [Reply(calls=[Call("bash", {"command": "\n".join(f"echo {line}" for line in _lines())})]), Reply("done")]
    ) as model:
        here = home(folder, url=model.url)
        with pty("go", home=here) as terminal:
            terminal.expect("n no > ")
            terminal.line("n")
            assert terminal.wait() == 0
            return terminal.text


SHOWN = dict(zip(PLACES, (_answer, _trust, _hooks, _mcp, _question), strict=True))


@pytest.fixture(scope="module", params=PLACES)
def shown(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    text = SHOWN[request.param](tmp_path_factory.mktemp("texts"))
    return request.param, "".join(text.split("\n")).replace("\r", "")


@pytest.mark.sample(40)
@pytest.mark.parametrize("number", range(len(ROWS)), ids=[ascii(text) for text in ROWS])
def test_what_cannot_be_seen_is_shown_as_its_number(shown: tuple[str, str], number: int) -> None:
    place, text = shown
    assert f"x{ROWS[number]}y" not in text
    # a review shows what JSON writes, and a question marks joiners in any case
    assert (f"{number:02d}:x" if place in ("cru hooks review", "a question") else _escaped(ROWS[number])) in text
