"""Whoever watches a run sees at each call who allowed, rewrote or added something, and who asked the agent to go on."""

from __future__ import annotations

from tests.faces.asks import scripted
from tests.faces.hooked import claude, model
from tests.kit import HomeDir, cru

CALL = 'call: bash {"command": "rm -rf build"}\n---\ntext: Done.\n---\ntext: Really.\n'
PLUGIN = """
from cru import on

@on("message:received")
def prompt(ctx, event):
    return {"content": event["content"] + " thoroughly"}

@on("tool:completed")
def result(ctx, event):
    return {"result": "nothing to see"}

@on("tool:before_call")
def looks(ctx, event):
    return None
"""


def answer(fields: str) -> dict[str, str]:
    hook = '{"hookSpecificOutput":{"hookEventName":"PreToolUse",' + fields + "}}"
    return {"command": f"echo '{hook}'"}


def plugin(home: HomeDir) -> None:
    path = home.path / ".cru" / "plugins" / "marker.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PLUGIN)


def test_what_a_hook_does_to_a_call_stands_at_the_call(home: HomeDir) -> None:
    model(home, CALL)
    claude(
        home,
        answer(
            '"permissionDecision":"allow","updatedInput":{"command":"echo safe"},"additionalContext":"mind the gap"'
        ),
        matcher="Bash",
    )
    err = cru("-v", "clean", home=home).err
    lines = err[err.index("[tool bash echo safe]") :].splitlines()
    place = "~/.claude/settings.json:7"
    assert lines[1:4] == [
        f"  [{place}: allowed]",
        f"  [{place}: command: rm -rf build → echo safe]",
        f"  [{place}: tells the model: PreToolUse:Bash hook additional context: mind the gap]",
    ], err


def test_a_refused_call_is_shown_with_its_arguments_and_who_refused_it_once(home: HomeDir) -> None:
    model(home, CALL)
    claude(home, {"command": "echo not while I watch >&2; exit 2"}, matcher="Bash")
    err = cru("-v", "clean", home=home).err
    assert "[tool bash rm -rf build]\n[tool bash hook: Blocked by hook" in err
    assert ": denied" not in err, err


def test_a_continuation_says_who_asked_for_it_and_how_often(home: HomeDir) -> None:
    model(home, CALL)
    claude(
        home,
        {"command": "[ -e tried ] || { touch tried; echo 'the tests\nfail' >&2; exit 2; }"},
        event="Stop",
    )
    err = cru("-v", "clean", home=home).err
    assert "[~/.claude/settings.json:7: Stop hook feedback:" in err, err
    assert "the tests fail (continuation 1 of at most 100)]" in err, err


def test_what_plugins_change_is_seen_and_what_only_looks_is_not(home: HomeDir) -> None:
    model(home, CALL)
    plugin(home)
    err = cru("-v", "clean", home=home).err
    assert ": changes the prompt: clean thoroughly]" in err, err
    assert ": changes the result: nothing to see]" in err, err


def test_a_pipe_without_v_is_told_nothing_of_it(home: HomeDir) -> None:
    model(home, CALL)
    claude(home, answer('"permissionDecision":"allow"'), matcher="Bash")
    assert "allowed" not in cru("clean", home=home).err


def test_a_call_that_a_handler_answers_is_shown_with_who_answered(home: HomeDir) -> None:
    model(home, CALL)
    path = home.path / ".cru" / "plugins" / "stand_in.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        'from cru import on\n\n@on("tool:before_call")\ndef instead(ctx, event):\n    return {"handled": True, "result": "all gone"}\n'
    )
    err = cru("-v", "clean", home=home).err
    assert "[tool bash rm -rf build]\n  [stand_in " in err, err
    assert ": answers in place of it: all gone]" in err, err


def test_a_context_file_is_named_or_left_out_with_the_reason(home: HomeDir) -> None:
    (home.project / "there.md").write_text("x")
    (home.project / "folder").mkdir()
    names = '{\\"context_files\\": [\\"there.md\\", \\"none.md\\", \\"folder\\", \\"/etc/hosts\\"]}'
    scripted(
        home, "text: Done.\n", f'[[hooks]]\nname = "namer"\nevent = "message:received"\ncommand = "echo \'{names}\'"\n'
    )
    err = cru("-v", "go", home=home).err
    shown = [line.rpartition(": names ")[2].rstrip("]") for line in err.splitlines() if ": names " in line]
    assert shown == [
        "there.md to the model",
        "none.md, which is left out: No such file or directory",
        "folder, which is left out: not a regular file",
        "/etc/hosts, which is left out: it lies outside of the project",
    ], err
