"""What a guard says holds, however it says it and whatever else is wrong; and what it must not give away. The real command."""

from __future__ import annotations

import os
from typing import Any

import msgspec
import pytest
from tests.core.hooks.dialect_world import calls, results, turn
from tests.kit import Call, HomeDir, Reply

KEY = "sk-verysecretkey-1234567890"
DONE = Reply("done")


def put(home: HomeDir, *entries: dict[str, Any], project: bool = False, **files: str) -> None:
    folder = home.project / ".cru" if project else home.cru
    folder.mkdir(exist_ok=True)
    given = [{"event": "tool:before_call", "name": "guard", **entry} for entry in entries]
    (folder / "hooks.json").write_text(msgspec.json.encode({"hooks": given}).decode())
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)


def prints(value: Any) -> str:
    return f"echo '{msgspec.json.encode(value).decode()}'"


def read(home: HomeDir, command: str = "echo ran", **more: Any) -> tuple[str, str]:
    """(what the model read of its call, what the person read)."""
    done, last = turn(home, calls(command), DONE, **more)
    assert done.code == 0, done
    return results(last)[-1].strip(), done.err


# faults that the bus finds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("policy", "heard"), [("deny", "failed"), ("ask", "nobody can be asked"), ("allow", "ran")])
def test_a_bad_change_counts_as_the_entry_says(home: HomeDir, policy: str, heard: str) -> None:
    put(home, {"command": prints({"changes": {"args": 5}}), "on_error": policy})
    result, err = read(home)
    assert heard in result and (result == "ran") == (policy == "allow"), result
    assert "set `args`" in err


def test_a_no_holds_beside_a_bad_change(home: HomeDir) -> None:
    put(home, {"command": prints({"decision": "deny", "reason": "never", "changes": {"args": 5}})})
    result, err = read(home)
    assert "never" in result and "set `args`" in err


# two shapes in one output -----------------------------------------------------------------------------------------------------------

INNER = {"hookEventName": "PreToolUse", "additionalContext": "x"}


def test_both_shapes_count_in_our_own_dialect(home: HomeDir) -> None:
    put(home, {"command": prints({"decision": "deny", "reason": "never", "hookSpecificOutput": INNER})})
    assert "never" in read(home)[0]


def test_crush_reads_only_the_nested_one_and_that_is_told(home: HomeDir) -> None:
    path = home.path / ".config" / "crush" / "crush.json"
    path.parent.mkdir(parents=True)
    output = prints({"decision": "deny", "reason": "never", "hookSpecificOutput": INNER})
    path.write_text(msgspec.json.encode({"hooks": {"PreToolUse": [{"command": output}]}}).decode())
    result, err = read(home, config='[hooks]\ndialects = ["crush"]')
    assert result.startswith("ran") and "`decision` beside hookSpecificOutput has no effect in Crush" in err


# functions in the words of commands -------------------------------------------------------------------------------------------------


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("returned", "heard"),
    [
        ('{ decision = "deny", reason = "never" }', "never"),
        ('{ decision = "block", reason = "never", note = "n" }', "never"),
        ('{ decision = "ask", reason = "sure?" }', "nobody can be asked"),
        ('{ halt = true, reason = "never", message = "hello" }', "never"),
        ('{ hookSpecificOutput = { permissionDecision = "deny", permissionDecisionReason = "never" } }', "never"),
        ('{ cancel = true, reason = "never", note = "n" }', "never"),
        ('{ decision = "deny", reason = "never", bogus = 1 }', "never"),
        ('{ decision = "dney" }', "`decision` is 'dney'"),
        ('{ decison = "deny" }', "unknown key `decison` (did you mean `decision`?)"),
        ('{ cancl = true }', "unknown key `cancl` (did you mean `cancel`?)"),
        ("{ updated_input = 5 }", "the output does not fit"),
        ("false", "returned bool"),
        ('"deny"', "returned str 'deny'"),
    ],
)  # fmt: skip
def test_a_function_may_answer_in_the_words_of_commands(home: HomeDir, returned: str, heard: str) -> None:
    put(home, {"lua": f"return {returned}"})
    done, last = turn(home, calls("echo ran"), DONE)
    read = [*results(last), done.err]
    assert any(heard in text for text in read) and "ran" not in read[0].split(), (done, read)


def test_what_else_the_words_of_commands_do(home: HomeDir) -> None:
    code = """
def one(ctx, event):
    return {"updated_input": {"command": "echo other"}, "context": ["note one", "note two"], "message": "psst"}
def two(ctx, event):
    event["args"]["command"] += " twice"
    event["decision"] = "allow"
    return event
"""
    put(home, {"python": "h.py:one"}, {"python": "h.py:two"}, h_py=code)
    result, err = read(home)
    assert result.startswith("other twice") and "note one" in result and "psst" in err and "failed" not in err, result


def test_an_unknown_key_fails_where_failing_denies_nothing(home: HomeDir) -> None:
    put(home, {"lua": 'return { decison = "deny" }', "on_error": "allow"}, {"command": prints({"decison": "deny"})})
    result, err = read(home)
    assert result == "ran" and err.count("did you mean `decision`?") == 2


@pytest.mark.parametrize("kind", ["lua", "command"])
@pytest.mark.parametrize(("policy", "heard"), [("deny", "the hook guard failed"), ("ask", "the hook guard failed")])
def test_an_unknown_key_counts_as_the_entry_says(home: HomeDir, kind: str, policy: str, heard: str) -> None:
    said = {"lua": 'return { decison = "deny" }', "command": prints({"decison": "deny"})}[kind]
    put(home, {kind: said, "on_error": policy})
    result, err = read(home)
    assert heard in result and "did you mean `decision`?" in result and "did you mean `decision`?" in err


# time and size ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", ["def", "async def"])
def test_a_function_in_python_is_left_at_its_limit(home: HomeDir, function: str) -> None:
    wait = "import time; time.sleep(60)" if function == "def" else "import asyncio; await asyncio.sleep(60)"
    code = f"{function} slow(ctx, event):\n    {wait}\n"
    put(home, {"python": "h.py:slow", "timeout": 0.3}, h_py=code)
    result, err = read(home)
    assert "no answer within 0.3 s" in result and "no answer within 0.3 s" in err


@pytest.mark.parametrize(("policy", "ran"), [("deny", False), ("ask", False), ("allow", True), (None, True)])
def test_arguments_that_no_variable_can_hold_are_told(home: HomeDir, policy: str | None, ran: bool) -> None:
    guard = 'case "$CRU_TOOL_ARGS" in *EVIL*) echo never >&2; exit 2;; esac'
    put(home, {"command": guard, "on_error": policy} if policy else {"command": guard})
    sizes = [Call("write", {"file_path": f"{size}", "content": "EVIL" + "x" * size}) for size in (70_000, 140_000)]
    done, last = turn(home, *[Reply(calls=[call]) for call in sizes], DONE)
    short, long = results(last)
    assert "never" in short and "CRU_TOOL_ARGS cannot be passed" in done.err
    assert (home.project / "140000").exists() == ran and ("CRU_TOOL_ARGS cannot be passed" in long) != ran, long


# keys -------------------------------------------------------------------------------------------------------------------------------

SEEN = """
import os
def look(ctx, event):
    names = ("CRU_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "AWS_SECRET_ACCESS_KEY", "PLAIN")
    open(os.environ["PLAIN"], "a").write(" ".join(name for name in names if name in os.environ) + "\\n")
"""
LUA_SEEN = """
local f = io.open(os.getenv("PLAIN"), "a")
for _, name in ipairs({"CRU_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "AWS_SECRET_ACCESS_KEY", "PLAIN"}) do
  if os.getenv(name) then f:write(name, " ") end
end
f:write("\\n") f:close()
"""
SHELL_SEEN = """env | grep -oE '^(CRU_API_KEY|OPENAI_API_KEY|GEMINI_API_KEY|AWS_SECRET_ACCESS_KEY|PLAIN)=' | sort |
    tr -d '=' | tr '\\n' ' ' >> "$PLAIN"; echo >> "$PLAIN" """


def seen(home: HomeDir, *argv: str, config: str = "") -> list[set[str]]:
    """Which variables each hook saw."""
    names = ("CRU_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "AWS_SECRET_ACCESS_KEY")
    path = home.path / "seen"
    turn(home, DONE, config=config, argv=argv, env={**dict.fromkeys(names, KEY), "PLAIN": os.fspath(path)})
    return [set(line.split()) for line in path.read_text().splitlines()]


@pytest.mark.sample(1)
@pytest.mark.parametrize("entry", [{"python": "h.py:look"}, {"lua": "h.lua"}, {"command": SHELL_SEEN}])
def test_a_projects_hook_sees_no_keys(home: HomeDir, entry: dict[str, str]) -> None:
    put(
        home,
        {**entry, "event": "message:received"},
        project=True,
        h_py=SEEN,
        h_lua=f"return function()\n{LUA_SEEN}\nend",
    )
    assert seen(home, "--hooks=all") == [{"PLAIN"}]
    (home.path / "seen").unlink()
    assert seen(home, "--hooks=all", config='[hooks]\nenv_pass = ["OPENAI_API_KEY"]') == [{"PLAIN", "OPENAI_API_KEY"}]


def test_code_in_the_process_sees_no_key_that_cru_uses_and_a_users_command_sees_all(home: HomeDir) -> None:
    put(
        home,
        {"python": "h.py:look", "event": "message:received"},
        {"command": SHELL_SEEN, "event": "message:received"},
        h_py=SEEN,
    )
    others = {"GEMINI_API_KEY", "AWS_SECRET_ACCESS_KEY", "PLAIN"}
    assert seen(home) == [others, others | {"CRU_API_KEY", "OPENAI_API_KEY"}]


@pytest.mark.parametrize(
    "entry",
    [
        {"command": f'cat >/dev/null; echo "never {KEY}" >&2; exit 2'},
        {"command": prints({"decision": "deny", "reason": f"never {KEY}", "message": f"psst {KEY}", "context": KEY})},
        {"command": f"echo 'never {KEY}' >&2; exit 1", "on_error": "deny"},
        {"lua": f'return {{ cancel = true, reason = "never {KEY}", message = "{KEY}" }}'},
        {"lua": f'error("never {KEY}")'},
        {"lua": f'error("never {KEY}")', "on_error": "deny"},
    ],
)  # fmt: skip
def test_a_known_key_goes_nowhere(home: HomeDir, entry: dict[str, Any]) -> None:
    put(home, entry)
    done, last = turn(home, calls("echo ran"), DONE, env={"CRU_API_KEY": KEY})
    assert "never [secret]" in results(last)[-1] and "[secret]" in done.err + done.out + results(last)[-1], (done, last)
    assert KEY not in done.err + done.out and KEY not in msgspec.json.encode(last).decode()
    files = [path for path in (home.cru / "contexts").rglob("*") if path.is_file()]
    assert files and not [path for path in files if KEY in path.read_text("utf-8", "replace")]
