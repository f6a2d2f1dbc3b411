"""`cru hooks test`: hooks run for real, against an event that did not happen."""

from __future__ import annotations

import msgspec
import pytest
from tests.faces.hooked import claude, crush, hooks, ids, model, script
from tests.faces.hooks_home import trust
from tests.kit import HomeDir, cru

GUARD = "if grep -q 'rm -rf'; then echo never >&2; exit 2; fi"


def test_a_denied_call_exits_with_3_and_calls_nothing(home: HomeDir) -> None:
    crush(
        home,
        {"name": "guard", "matcher": "^bash$", "command": GUARD},
        {"name": "viewer", "matcher": "^vew$", "command": "true"},
    )
    model(home)
    words = ("test", "PreToolUse", "--tool", "Bash", "--input", '{"command": "rm -rf /"}')
    out = hooks(home, *words, code=3).out
    assert '"tool_input":{"command":"rm -rf /"}' in out and "stderr: never" in out
    assert "exit 2: denied: never" in out and f"together: denied by guard ({ids(home)['guard']}): never" in out
    assert "did not fire: its matcher `^vew$` does not fit bash" in out
    assert not home.context().exists()


def test_one_that_says_nothing_exits_with_0(home: HomeDir) -> None:
    crush(home, {"command": GUARD})
    model(home)
    out = hooks(home, "test", "pre_tool_use", "--tool", "bash", "--input", '{"command": "ls"}').out
    assert "said nothing" in out and "together: nobody decided" in out


def test_changes_and_context_are_shown_composed(home: HomeDir) -> None:
    crush(
        home,
        {"name": "one", "command": """echo '{"updated_input": {"command": "ls -l"}, "context": "look"}'"""},
        {"name": "two", "command": """echo '{"updated_input": {"timeout": 5}}'"""},
    )
    model(home)
    out = hooks(home, "test", "PreToolUse", "--input", '{"command": "ls"}').out
    known = ids(home)
    assert f"args changed by one ({known['one']}), then two ({known['two']})" in out
    assert 'args is now {"command":"ls -l","timeout":5}' in out and "for the model: look" in out


def test_those_that_nobody_has_accepted_are_not_run(home: HomeDir) -> None:
    script(home, "hook.sh", "#!/bin/sh\ntouch ran\n")
    (home.project / "crush.json").write_text('{"hooks": {"PreToolUse": [{"command": "./hook.sh"}]}}')
    model(home)
    out = hooks(home, "test", "PreToolUse").out
    assert "not run: nobody has accepted it yet: `cru hooks review`" in out
    assert not (home.project / "ran").exists()
    trust(home, ids(home)["./hook.sh"])
    hooks(home, "test", "PreToolUse")
    assert (home.project / "ran").exists()


def test_one_hook_only(home: HomeDir) -> None:
    crush(home, {"name": "one", "command": "touch one"}, {"name": "two", "command": "touch two"})
    model(home)
    hooks(home, "test", "PreToolUse", "--id", ids(home)["two"])
    assert not (home.project / "one").exists() and (home.project / "two").exists()
    assert "no hook of this event has the id nosuch" in hooks(home, "test", "PreToolUse", "--id", "nosuch", code=1).err


def test_prompts_and_other_events(home: HomeDir) -> None:
    crush(home, {"name": "p", "command": "cat"}, event="UserPromptSubmit")
    claude(home, {"command": "cat; exit 2"}, event="Stop")
    model(home)
    assert '"prompt":"say hi"' in hooks(home, "test", "UserPromptSubmit", "--prompt", "say hi").out
    out = hooks(home, "test", "Stop", "--payload", '{"response": "all done"}').out
    assert "all done" in out and "exit 2" in out


@pytest.mark.parametrize("event", ["SessionStart", "session:started"])
def test_an_event_with_several_moments_is_the_first_of_them(home: HomeDir, event: str) -> None:
    claude(home, {"command": "cat"}, event="SessionStart")
    model(home)
    assert '"source":"startup"' in hooks(home, "test", event).out


def test_a_function_in_lua_and_one_in_python_are_run_too(home: HomeDir) -> None:
    model(home)
    (home.project / "no.py").write_text(
        "def check(ctx, event):\n    return {'cancel': True, 'reason': 'python says no'}\n"
    )
    entries = [
        {"event": "tool:before_call", "name": "l", "lua": 'return { context = "from lua" }'},
        {"event": "tool:before_call", "name": "p", "python": f"{home.project}/no.py:check"},
    ]
    (home.cru / "hooks.json").write_bytes(msgspec.json.encode({"hooks": entries}))
    out = hooks(home, "test", "tool:before_call", code=3).out
    assert "gave context" in out and "denied: python says no" in out


def test_for_programs_it_is_json(home: HomeDir) -> None:
    crush(home, {"name": "guard", "command": GUARD})
    model(home)
    run = hooks(home, "test", "PreToolUse", "--input", '{"command": "rm -rf /"}', "--json", code=3)
    told = msgspec.json.decode(run.out)
    assert told["answer"] == {"decision": "deny", "reason": "never"} and told["fired"][0]["exit"] == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "needs an event"),
        (("PreTolUse",), "did you mean `PreToolUse`?"),
        (("PreToolUse", "--input", "{"), "--input is not JSON"),
        (("PreToolUse", "--input", "[1]"), "--input is not a JSON object"),
        (("UserPromptSubmit", "--tool", "bash"), "is about no tool"),
        (("PreToolUse", "--prompt", "x"), "has no prompt"),
        (("PreToolUse", "--payload", '{"nam": 1}'), "has no field `nam`"),
        (("PreToolUse", "--payload", '{"name": 1}'), "Expected `str`, got `int`"),
        (("PreToolUse", "--inptu", "{}"), "did you mean"),
    ],
)
def test_bad_words_are_clear_errors(home: HomeDir, words: tuple[str, ...], said: str) -> None:
    crush(home, {"command": "true"})
    model(home)
    run = cru("hooks", "test", *words, home=home)
    assert run.code in (1, 2) and said in run.err and "Traceback" not in run.err and not run.out
