"""The real command with hooks of a project that a person trusted, and that somebody has changed since."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.faces.hooks_home import CALLS, TOUCH, model, project, ran, rows, seen, trust, trust_all, turn
from tests.kit import HomeDir, cru, pty

GUARD: dict[str, Any] = {"event": "tool:before_call", "command": "true", "name": "guard"}
WRITES = CALLS.replace("true", "echo x >> done").partition("\n")[2]
Change = Callable[[Path], object]


def own(path: Path, *entries: dict[str, Any]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(msgspec.json.encode({"hooks": entries}))


def claude(path: Path, handler: dict[str, Any], event: str = "PreToolUse", **more: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    group = {"matcher": "Bash", "hooks": [{"type": "command", "command": "true", **handler}]}
    path.write_bytes(msgspec.json.encode({"hooks": {event: [group]}, **more}))


def done(home: HomeDir) -> int:
    path = home.project / "done"
    return path.read_text().count("x") if path.exists() else 0


# while a session runs ---------------------------------------------------------------------------------------------------------------

OWN: dict[str, Change] = {
    "off in its own file": lambda path: own(path, {**GUARD, "enabled": False}),
    "another matcher": lambda path: own(path, {**GUARD, "matcher": "none"}),
    "an alias of the event": lambda path: own(path, {**GUARD, "event": "PreToolUse", "command": "false"}),
    "another event": lambda path: own(path, {**GUARD, "event": "tool:completed"}),
    "no such event": lambda path: own(path, {**GUARD, "event": "tool:never"}),
    "a broken matcher": lambda path: own(path, {**GUARD, "matcher": "("}),
    "no command": lambda path: own(path, {"event": "tool:before_call"}),
    "not JSON": lambda path: path.write_text('{"hooks": ['),
    "cut off": lambda path: path.write_text("{"),
    "not UTF-8": lambda path: path.write_bytes(b"\xff\xfe"),
    "too large": lambda path: path.write_bytes(b" " * (2 << 20)),
}
CLAUDE: dict[str, Change] = {
    "disableAllHooks": lambda path: claude(path, {}, disableAllHooks=True),
    "a type that never runs": lambda path: claude(path, {"type": "prompt", "prompt": "x"}),
    "no such type": lambda path: claude(path, {"type": "none"}),
    "no such event": lambda path: claude(path, {}, event="Quux"),
}
CASES = [(".cru/hooks.json", what, change) for what, change in OWN.items()]
CASES += [(".claude/settings.json", what, change) for what, change in CLAUDE.items()]


@pytest.mark.sample(1)
@pytest.mark.parametrize(("file", "what", "change"), CASES, ids=[f"{file}: {what}" for file, what, _ in CASES])
def test_whatever_becomes_of_a_guard_it_denies(home: HomeDir, file: str, what: str, change: Change) -> None:
    model(home, f"by: order\n{WRITES}---\n{WRITES}---\n{WRITES}")
    path = home.project / file
    if ".claude" in file:
        claude(path, {})
    else:
        own(path, {**GUARD, "once": True})
    trust_all(home)
    with pty(home=home) as terminal:
        terminal.expect("> ")
        terminal.line("one")
        terminal.expect("Done.")
        assert done(home) == 1
        change(path)
        for _ in range(2):
            terminal.line("two")
            terminal.expect("changed since it was trusted")
            terminal.expect("Done.")
            assert done(home) == 1, what
        assert terminal.eof() == 0


@pytest.mark.slow
def test_a_guard_that_is_gone_or_refused_has_no_say(home: HomeDir) -> None:
    model(home, f"by: order\n{WRITES}---\n{WRITES}---\n{WRITES}---\n{WRITES}")
    path = home.project / ".cru" / "hooks.json"
    own(path, GUARD)
    trust_all(home)
    with pty(home=home) as terminal:
        terminal.expect("> ")
        own(path, {**GUARD, "enabled": False})
        terminal.line("one")
        terminal.expect("what stands in its place is disabled")
        terminal.expect("Done.")
        assert done(home) == 0
        assert cru("hooks", "review", "--refuse", rows(home)[0]["id"], home=home).code == 0
        terminal.line("two")
        terminal.expect("Done.")
        assert done(home) == 1
        own(path, GUARD)
        terminal.line("three")
        terminal.expect("Done.")
        own(path)
        terminal.line("four")
        terminal.expect("Done.")
        assert done(home) == 3
        assert terminal.eof() == 0


def test_the_users_own_file_may_switch_a_guard_off(home: HomeDir) -> None:
    model(home, f"by: order\n{WRITES}---\n{WRITES}")
    claude(home.project / ".claude" / "settings.json", {})
    trust_all(home)
    with pty(home=home) as terminal:
        terminal.expect("> ")
        terminal.line("one")
        terminal.expect("Done.")
        (home.path / ".claude").mkdir()
        (home.path / ".claude" / "settings.json").write_text('{"disableAllHooks": true, "hooks": {}}')
        terminal.line("two")
        terminal.expect("Done.")
        assert done(home) == 2
        assert terminal.eof() == 0


# in the next session ----------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_hook_that_was_trusted_and_has_changed_says_so(home: HomeDir) -> None:
    model(home)
    script = project(home, "./hook.sh", "true")
    trust_all(home)
    script.write_text(TOUCH + "# more\n")
    told = f"accepted earlier, {script} changed since"
    run = turn(home)
    assert "1 project hook that you trusted has changed and does not run: `cru hooks review`" in run.err
    assert told in run.err and "await" not in run.err and ran(home) == 0
    assert told in cru("hooks", "list", home=home).out
    assert told in cru("hooks", "why", home=home).out
    assert told in cru("hooks", "check", home=home).out
    run = turn(home, "--strict-hooks", code=3)
    assert f"untrusted ({told}" in run.err
    trust_all(home)
    assert "trust" not in turn(home).err and ran(home) == 1


@pytest.mark.slow
@pytest.mark.parametrize("how", ["disableAllHooks", "prompt", "gone"])
def test_a_trusted_hook_that_is_switched_off_or_gone_says_so_until_a_person_accepts_that(
    home: HomeDir, how: str
) -> None:
    model(home, "loop: yes\ntext: Done.\n")
    path = home.project / ".claude" / "settings.json"
    claude(path, {})
    trust_all(home)
    assert turn(home, "--strict-hooks").err == ""
    if how == "gone":
        path.write_text("{}")
    else:
        handler = {"type": "prompt", "prompt": "x"} if how == "prompt" else {}
        claude(path, handler, "PreToolUse", **({} if handler else {"disableAllHooks": True}))
    told = f"true: accepted earlier, {'switched off' if how == 'disableAllHooks' else 'gone or changed'} in {path}"
    err = turn(home).err
    assert "1 project hook that you trusted has changed or is switched off: `cru hooks review`" in err and told in err
    assert told in turn(home, "--strict-hooks", code=3).err
    review = cru("hooks", "review", home=home)
    assert "to accept it is to do without this hook" in review.out
    assert "it may be so" in cru("hooks", "review", "--trust", *seen(home), home=home).out
    if how == "prompt":  # it is there, and cannot run
        assert "this guard does not run" in turn(home, "--strict-hooks", code=3).err
        cru("hooks", "disable", rows(home)[0]["id"], home=home)
    assert "that you trusted" not in turn(home, "--strict-hooks").err
    claude(path, {})
    assert turn(home).err == ""


def test_the_review_shows_what_has_changed(home: HomeDir) -> None:
    script = project(home, script="#!/bin/sh\n" + "".join(f"# {n}\n" for n in range(40)))
    trust_all(home)
    kept = list((home.cru / "trust").iterdir())
    assert len(kept) == 1 and stat.S_IMODE(kept[0].stat().st_mode) == 0o600
    script.write_text(script.read_text().replace("# 20\n", "# 20\n  runs       true\u3164\x1b[2J\n"))
    out = cru("hooks", "review", home=home).out
    change = out[out.index("change in") : out.index("as written")]
    assert "       + │   runs       true\\u3164\\x1b[2J\n" in change and "         │ # 20\n" in change
    assert "# 10\n" not in change and "# 10\n" in out
    kept[0].write_text("forged")
    assert "what it was is not kept" in cru("hooks", "review", home=home).out


def test_a_record_of_an_earlier_version_says_that_it_changed(home: HomeDir) -> None:
    model(home)
    script = project(home)
    trust_all(home)
    path = home.cru / "trust.json"
    said = msgspec.json.decode(path.read_bytes())
    for one in said["hooks"].values():
        del one["key"], one["files"]
    path.write_bytes(msgspec.json.encode(said))
    assert turn(home).err == "" and ran(home) == 1
    script.write_text(TOUCH + "# more\n")
    assert "accepted earlier, what it runs has changed since" in turn(home).err
    assert "changed" in cru("hooks", "review", home=home).out


def test_a_refused_hook_tells_the_line_that_takes_it_back(home: HomeDir) -> None:
    model(home)
    project(home)
    only = rows(home)[0]["id"]
    cru("hooks", "review", "--refuse", only, home=home)
    why = rows(home)[0]["why"]
    assert why.startswith(f"`cru hooks review --trust {only}@")
    trust(home, why.split("`")[1].split()[-1])
    turn(home)
    assert ran(home) == 1


# what is looked at ------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_strangers_words_do_not_hold_up_a_start(home: HomeDir) -> None:
    model(home, "loop: yes\ntext: Done.\n")
    project(home, "true")
    trust_all(home)
    words = " ".join(f"d{n}" for n in range(600))
    for number in range(60):
        (home.project / f"d{number}").mkdir()
    project(home, *(f"{words} {number}" for number in range(60)))
    assert "60 project hooks await trust" in turn(home).err
    run = cru("hooks", "review", home=home)
    assert run.out.count("it names more files than cru looks at") == 60
    word = run.out.split()[0]
    run = cru("hooks", "review", "--trust", word, home=home)
    assert run.code == 2 and "names more files than cru looks at, so it is not accepted" in run.err
    assert {row["state"] for row in rows(home)} == {"untrusted"}
