"""`cru.ui.edit`: a text in the person's editor, and back."""

from __future__ import annotations

import pytest
from tests.faces.asks import answers, asking, plugin, scripted
from tests.kit import HomeDir, Terminal, pty

pytestmark = pytest.mark.long

EDIT = 'cru.ui.edit(nil, { content = "draft", format = "markdown", hint = "the title" })'


def editor(home: HomeDir, script: str) -> dict[str, str]:
    path = home.path / "editor"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return {"EDITOR": f"{path} --wait", "TMPDIR": str(home.path)}


def edited(home: HomeDir, env: dict[str, str]) -> Terminal:
    with pty("hi", home=home, env=env) as terminal:
        assert terminal.wait() == 0
    return terminal


def test_an_editor_gets_a_private_file_and_its_text_comes_back(home: HomeDir) -> None:
    scripted(home)
    plugin(home, 'for _, e in ipairs{"session:paused", "session:resumed"} do cru.on(e, function() '
                 'cru.fs.append("answers", cru.json.encode(e) .. "\\n") end) end', "paused.lua")  # fmt: skip
    asking(home, EDIT)
    env = editor(home, f'echo "$1 $(stat -c %a "$2") $(cat "$2")" >{home.project}/seen; echo done >"$2"')
    terminal = edited(home, env)
    assert "[asks] the title\n" in terminal.text
    assert (home.project / "seen").read_text() == "--wait 600 draft\n"
    assert answers(home) == ["session:paused", "session:resumed", {"kind": "edit", "modified": "done\n"}]
    assert list(home.path.glob("cru-*")) == []


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("exit 3", "exit status 3"),
        ("rm $2", "what the editor left cannot be read"),
        ("printf '\\377' >$2", "cannot be read"),
    ],
)
def test_an_editor_that_fails_cancels_with_its_reason(home: HomeDir, script: str, told: str) -> None:
    scripted(home)
    asking(home, EDIT)
    assert told in edited(home, editor(home, script)).text
    assert answers(home) == [{"kind": "cancelled"}]


@pytest.mark.parametrize(
    ("env", "told"),
    [
        ({}, "there is no editor: set $VISUAL or $EDITOR"),
        ({"VISUAL": "no-such-editor"}, "no-such-editor: No such file"),
    ],
)
def test_no_editor_is_said(home: HomeDir, env: dict[str, str], told: str) -> None:
    scripted(home)
    asking(home, EDIT)
    assert told in edited(home, env).text
    assert answers(home) == [{"kind": "cancelled"}]


def test_a_text_that_comes_too_late_is_kept(home: HomeDir) -> None:
    scripted(home)
    asking(home, EDIT.replace("})", "}, 1)"))
    terminal = edited(home, editor(home, 'echo mine >"$2"; exec sleep 30'))
    (kept,) = home.path.glob("cru-*")
    assert kept.read_text() == "mine\n"
    assert f"your text is in {kept}" in terminal.text.replace("\n", "")
    assert answers(home) == [{"kind": "cancelled"}]


def test_ctrl_c_in_an_editor_is_for_the_editor(home: HomeDir) -> None:
    scripted(home)
    asking(home, EDIT)
    env = editor(home, "trap 'echo stopped >$2; exit 0' INT; echo ready; while :; do sleep 0.05; done")
    with pty("hi", home=home, env=env) as terminal:
        terminal.expect("ready")
        terminal.key("c-c")
        assert terminal.wait() == 0
    assert answers(home) == [{"kind": "edit", "modified": "stopped\n"}]
