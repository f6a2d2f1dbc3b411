"""Entries in Lua and Python: functions in the session, with the tables and answers of plugins. The real command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.core.hooks.dialect_world import calls, results, turn
from tests.faces.hooks_home import trust
from tests.kit import HomeDir, Reply, cru

LUA = 'if event.args.command:match("rm") then return { cancel = true, reason = "kept by " .. ctx.handler_name } end'
PYTHON = """
calls = 0
def guard(ctx, event):
    if "rm" in event["args"]["command"]:
        return {"cancel": True, "reason": "kept by " + ctx.handler_name}
def count(ctx, event):
    global calls
    calls += 1
    return {"inject": f"call {calls}"} if calls == 1 else None
async def crash(ctx, event):
    raise ValueError("no way")
"""


def put(folder: Path, *entries: dict[str, Any], **files: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "hooks.json").write_text(msgspec.json.encode({"hooks": entries}).decode())
    (folder / "g.lua").write_text(f"return function(ctx, event)\n  {LUA}\nend\n")
    (folder / "g.py").write_text(PYTHON)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)


@pytest.mark.parametrize("handler", [{"lua": LUA}, {"lua": "g.lua"}, {"file": "g.lua"}, {"python": "g.py:guard"}])
def test_a_function_denies_what_its_matcher_lets_through(home: HomeDir, handler: dict[str, str]) -> None:
    put(home.cru, {"event": "tool:before_call", "matcher": "^bash$", "name": "guard", **handler})
    done, last = turn(home, calls("rm x"), calls("echo ok"), Reply("done"))
    denied, ran = results(last)
    assert "kept by guard" in denied and ran.strip() == "ok" and done.code == 0 and "failed" not in done.err, done


def test_functions_run_before_the_commands_of_their_priority_and_in_the_order_of_the_file(home: HomeDir) -> None:
    say = 'event.payload.content = event.content .. " %s" return event'
    put(
        home.cru,
        {
            "event": "message:received",
            "command": """sed -E 's/.*"content":"([^"]*)".*/{"updated_prompt":"\\1 command"}/'""",
        },
        {"event": "message:received", "lua": say % "one"},
        {"event": "message:received", "lua": say % "last", "priority": 200},
        {"event": "message:received", "lua": say % "two"},
    )
    done, last = turn(home, Reply("done"))
    assert last[-1]["content"] == "go one two command last", done


def test_functions_of_one_file_share_its_module(home: HomeDir) -> None:
    put(
        home.cru, {"event": "turn:complete", "python": "g.py:count"}, {"event": "turn:complete", "python": "g.py:count"}
    )
    done, last = turn(home, Reply("one"), Reply("two"))
    assert last[-1]["content"] == "call 1", done


@pytest.mark.slow
@pytest.mark.parametrize(
    ("handler", "told"),
    [
        ({"python": "g.py:crash"}, "g.py:11: ValueError: no way"),
        ({"python": "g.py:gaurd"}, "has no function gaurd"),
        ({"python": "missing.py:guard"}, "missing.py"),
        ({"lua": "error('no way')"}, "no way"),
        ({"lua": "if then"}, "hooks.json:1"),
        ({"lua": "bad.lua"}, "returns no function"),
        ({"lua": "while true do end"}, "longer than"),
    ],
)
def test_one_that_fails_denies_the_call_and_is_named(home: HomeDir, handler: dict[str, str], told: str) -> None:
    put(home.cru, {"event": "tool:before_call", **handler}, bad_lua="return 5\n")
    done, last = turn(home, calls("echo ok"), Reply("done"))
    assert told in done.err and "hooks.json:1" in done.err and done.code == 0, done
    assert "failed" in results(last)[-1] and "ok" not in results(last)[-1].split(), last


def test_on_error_says_otherwise(home: HomeDir) -> None:
    entry = {"event": "tool:before_call", "python": "g.py:crash", "name": "guard"}
    put(home.cru, {**entry, "on_error": "allow"})
    _, last = turn(home, calls("echo ok"), Reply("done"))
    assert results(last)[-1].strip() == "ok"
    put(home.cru, {**entry, "on_error": "ask"})
    _, last = turn(home, calls("echo ok"), Reply("done"))
    assert "the hook guard failed" in results(last)[-1] and "nobody can be asked" in results(last)[-1]


def test_once_and_the_record(home: HomeDir) -> None:
    put(home.cru, {"event": "tool:before_call", "lua": "cru.log('warn', 'called') return nil", "once": True})
    turn(home, calls("true"), calls("true"), Reply("done"))
    lines = (home.context() / "hooks.jsonl").read_bytes().splitlines()
    fired = [line for line in map(msgspec.json.decode, lines) if line["k"] == "fired"]
    assert [(line["event"], line["exit"], line["subject"]) for line in fired] == [("tool:before_call", 0, "bash")]


@pytest.mark.slow
def test_a_projects_functions_await_trust_and_are_looked_at_again(home: HomeDir) -> None:
    put(home.project / ".cru", {"event": "tool:before_call", "python": "g.py:guard", "name": "guard"})
    done, last = turn(home, calls("rm -f x; echo ran"), Reply("done"))
    assert results(last)[-1].strip() == "ran" and "awaits trust" in done.err
    listed = msgspec.json.decode(cru("hooks", "list", "--json", home=home).out)
    trust(home, listed[0]["id"])
    _, last = turn(home, calls("rm -f x; echo ran"), Reply("done"))
    assert "kept by guard" in results(last)[-1]
    (home.project / ".cru" / "g.py").write_text(PYTHON + "# changed\n")
    done, last = turn(home, calls("rm -f x; echo ran"), Reply("done"))
    assert results(last)[-1].strip() == "ran" and "you trusted has changed" in done.err


def test_nothing_of_a_language_is_loaded_without_such_an_entry() -> None:
    names = "('lupa', 'cru.core.hooks.run.function')"
    probe = f"import sys, cru.core.hooks.session; print([m for m in {names} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_a_projects_function_that_is_changed_while_it_is_loaded_denies(home: HomeDir) -> None:
    put(
        home.project / ".cru",
        {"event": "tool:before_call", "python": "g.py:guard", "name": "guard", "on_error": "allow"},
    )
    trust(home, msgspec.json.decode(cru("hooks", "list", "--json", home=home).out)[0]["id"])
    done, last = turn(home, calls("echo '# changed' >> .cru/g.py"), calls("echo ran"), Reply("done"))
    assert "changed since it was trusted" in results(last)[-1] and "g.py changed after you trusted it" in done.err
