"""Which hooks hear a call before the calls ahead of it have run: as their own program does (docs/hooks.md, "When calls are decided")."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from tests.kit import Call, HomeDir, Reply, cru, server

ONE_BY_ONE = ["Pre a", "Post a", "Pre b", "Post b", "Pre c", "Post c"]
AHEAD = ["Pre a", "Pre b", "Pre c", "Post a", "Post b", "Post c"]
FILES = {"claude": ".claude/settings.json", "codex": ".codex/hooks.json", "gemini": ".gemini/settings.json"}
CASES: dict[str, tuple[tuple[str, ...], list[str]]] = {
    "claude": (("claude",), ONE_BY_ONE),
    "codex": (("codex",), AHEAD),
    "gemini": (("gemini",), ONE_BY_ONE),
    "codex beside claude": (("claude", "codex"), ONE_BY_ONE),
}


def hooks(dialect: str, note: str) -> Mapping[str, object]:
    names = ("BeforeTool", "AfterTool") if dialect == "gemini" else ("PreToolUse", "PostToolUse")
    return {
        "hooks": {
            name: [{"hooks": [{"type": "command", "command": f"{note} {word}"}]}]
            for name, word in zip(names, ("Pre", "Post"), strict=True)
        }
    }


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", CASES)
def test_hooks_hear_calls_in_the_order_of_their_program(home: HomeDir, name: str) -> None:
    dialects, expected = CASES[name]
    note = home.path / "note.py"
    note.write_text(
        "import json, sys\n"
        f"word = json.load(sys.stdin)['tool_input']['command'].split()[-1]\n"
        f"print(sys.argv[1], word, file=open({str(home.path / 'heard')!r}, 'a'))\n"
    )
    for dialect in dialects:
        file = home.path / FILES[dialect]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(hooks(dialect, f"python3 -S {note}" if dialect == dialects[0] else "true")))
    batch = Reply(calls=[Call("bash", {"command": f"echo {word}"}) for word in "abc"])
    with server([batch, Reply("done")]) as model:
        home.configure(f'mode = "trust"\n[hooks]\ndialects = {json.dumps(dialects)}\n', url=model.url)
        done = cru("go", home=home)
    assert done.code == 0, done
    assert (home.path / "heard").read_text().splitlines() == expected


def test_one_deploy_only(home: HomeDir) -> None:
    """A guard that looks for what the call before it did: the second and the third call are refused."""
    done_file = home.project / "done"
    guard = f"test -e {done_file} && echo 'there was one' >&2 && exit 2; exit 0"
    settings = home.path / ".claude/settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": guard}]}]}}))
    batch = Reply(calls=[Call("bash", {"command": f"touch {done_file}; touch ran{n}"}) for n in range(3)])
    with server([batch, Reply("done")]) as model:
        home.configure('mode = "trust"\n[hooks]\ndialects = ["claude"]\n', url=model.url)
        cru("go", home=home)
    assert sorted(path.name for path in home.project.glob("ran*")) == ["ran0"]


def test_one_deploy_only_where_another_program_answers_the_question(home: HomeDir) -> None:
    """Codex' hooks hear calls ahead of time, but not where a hook of Claude's is asked about them."""
    done_file = home.project / "done"
    answer = '{"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "%s"}}}'
    guard = f"test -e {done_file} && echo '{answer % 'deny'}' || echo '{answer % 'allow'}'"
    for file, event, command in (
        (".codex/hooks.json", "PreToolUse", "true"),
        (".claude/settings.json", "PermissionRequest", guard),
    ):
        (home.path / file).parent.mkdir(parents=True)
        (home.path / file).write_text(
            json.dumps({"hooks": {event: [{"hooks": [{"type": "command", "command": command}]}]}})
        )
    batch = Reply(calls=[Call("bash", {"command": f"touch {done_file}; touch ran{n}"}) for n in range(3)])
    with server([batch, Reply("done")]) as model:
        home.configure('[hooks]\ndialects = ["claude", "codex"]\n', url=model.url)
        cru("go", home=home)
    assert sorted(path.name for path in home.project.glob("ran*")) == ["ran0"]
