"""Command hooks through the real command: what a project brings runs only after a person has seen it."""

from __future__ import annotations

import os
import threading
from typing import Any

import msgspec
import pytest
from tests.faces.hooks_home import CALLS, TOUCH, foreign, model, project, ran, rows, seen, trust, trust_all, turn
from tests.faces.test_start import WITHOUT_HOOKS, loaded
from tests.kit import HomeDir, cru, pty

# before and after trust -----------------------------------------------------------------------------------------------------------


def test_a_hook_of_a_project_runs_after_a_person_has_accepted_it_and_not_before(home: HomeDir) -> None:
    model(home)
    project(home)
    assert "1 project hook awaits trust: `cru hooks review`" in turn(home).err
    assert ran(home) == 0
    assert [row["state"] for row in rows(home)] == ["untrusted"]
    assert "is trusted as shown" in trust_all(home).out
    assert "trust" not in turn(home).err
    assert ran(home) == 1
    assert [row["state"] for row in rows(home)] == ["active"]


def test_a_changed_script_is_a_stranger_again_and_its_old_content_is_not(home: HomeDir) -> None:
    model(home)
    script = project(home)
    trust_all(home)
    script.write_text(TOUCH + "# more\n")
    assert "that you trusted has changed" in turn(home).err and ran(home) == 0
    script.write_text(TOUCH)
    turn(home)
    assert ran(home) == 1


def test_a_changed_definition_is_a_stranger_again(home: HomeDir) -> None:
    model(home)
    project(home)
    trust_all(home)
    text = (home.project / "crush.json").read_text()
    (home.project / "crush.json").write_text(text.replace('"./hook.sh"', '"./hook.sh","timeout":3'))
    assert "accepted earlier, its entry changed since" in turn(home).err and ran(home) == 0


def test_the_same_files_in_another_project_are_strangers(home: HomeDir) -> None:
    model(home)
    project(home)
    trust_all(home)
    other = home.path / "other"
    other.mkdir()
    for name in ("crush.json", "hook.sh"):
        (other / name).write_bytes((home.project / name).read_bytes())
    assert "awaits trust" in turn(home, cwd=other).err and not (other / "ran").exists()


def test_a_script_that_changes_in_the_middle_of_a_session_does_not_run(home: HomeDir) -> None:
    script = project(home)
    model(home, 'by: order\ncall: bash {"command": "echo evil >> hook.sh"}\n---\n' + CALLS.partition("\n")[2])
    trust_all(home)
    run = turn(home)
    assert f"{script} changed after you trusted it, so the hook does not run (`cru hooks review`)" in run.err
    assert ran(home) == 1 and run.out.endswith("Done.\n")


def test_a_link_that_leads_elsewhere_in_the_middle_of_a_session_does_not_run(home: HomeDir) -> None:
    good = project(home)
    good.rename(home.project / "good.sh")
    (home.project / "evil.sh").write_text(TOUCH + "echo ran >> ran\n")
    good.symlink_to("good.sh")
    model(home, 'by: order\ncall: bash {"command": "ln -sf evil.sh hook.sh"}\n---\n' + CALLS.partition("\n")[2])
    trust_all(home)
    assert "hook.sh changed after you trusted it" in turn(home).err
    assert ran(home) == 1


def test_a_script_that_is_gone_does_not_end_the_turn(home: HomeDir) -> None:
    project(home)
    model(home, 'by: order\ncall: bash {"command": "rm hook.sh"}\n---\n' + CALLS.partition("\n")[2])
    trust_all(home)
    assert "hook.sh changed after you trusted it" in turn(home).err


@pytest.mark.slow
def test_what_was_refused_is_not_asked_again_until_it_changes(home: HomeDir) -> None:
    model(home)
    script = project(home)
    only = rows(home)[0]["id"]
    assert cru("hooks", "review", "--refuse", only, home=home).code == 0
    assert "trust" not in turn(home).err and ran(home) == 0
    assert [row["state"] for row in rows(home)] == ["refused"]
    assert cru("hooks", "review", home=home).out == "no hook awaits trust\n"
    script.write_text(TOUCH + "\n")
    assert "awaits trust" in turn(home).err
    script.write_text(TOUCH)
    trust(home, only)
    turn(home)
    assert ran(home) == 1


def test_a_project_hook_has_no_keys_of_providers_and_one_of_the_user_has(home: HomeDir) -> None:
    model(home, config='[hooks]\ndialects = ["crush"]\n')
    project(home, "env > project.env")
    foreign(home, "env > user.env")
    trust_all(home)
    keys = {"OPENAI_API_KEY": "key-1", "ANTHROPIC_API_KEY": "key-2", "OTHER": "stays"}
    turn(home, env=keys)
    seen = (home.project / "project.env").read_text()
    assert "key-1" not in seen and "key-2" not in seen and "OTHER=stays" in seen and "CRU_CONTEXT=default" in seen
    assert "key-1" in (home.project / "user.env").read_text()
    model(home, config='[hooks]\nenv_pass = ["OPENAI_API_KEY"]\n')
    turn(home, env=keys)
    seen = (home.project / "project.env").read_text()
    assert "key-1" in seen and "key-2" not in seen


# flags ----------------------------------------------------------------------------------------------------------------------------


def test_hooks_all_runs_what_nobody_accepted_and_says_so(home: HomeDir) -> None:
    model(home)
    project(home)
    run = turn(home, "--hooks=all")
    assert "--hooks=all: 1 hook that nobody has accepted may run: ./hook.sh" in run.err and ran(home) == 1
    assert [row["state"] for row in rows(home)] == ["untrusted"]
    cru("hooks", "review", "--refuse", rows(home)[0]["id"], home=home)
    turn(home, "--hooks=all")
    assert ran(home) == 0


def test_hooks_none_runs_nothing_and_says_nothing(home: HomeDir) -> None:
    model(home)
    project(home)
    trust_all(home)
    assert turn(home, "--hooks=none").err.count("hook") == 0
    assert ran(home) == 0


def test_an_unknown_choice_names_the_closest(home: HomeDir) -> None:
    run = cru("--hooks=trustd", "hello", home=home)
    assert run.code == 2 and "did you mean `trusted`?" in run.err


def test_strict_hooks_does_not_begin_while_one_awaits_trust_or_is_broken(home: HomeDir) -> None:
    model(home)
    project(home)
    run = turn(home, "--strict-hooks", code=3)
    assert f"{home.project}/crush.json:1: ./hook.sh: untrusted" in run.err and "cru hooks review" in run.err
    assert run.out == "" and home.log()[1:] == []
    trust_all(home)
    assert turn(home, "--strict-hooks").out == "Done.\n"
    (home.project / ".crush.json").write_text('{"hooks": {"PreToolUse": [\n  {"command": ""}\n]}}')
    run = turn(home, "--strict-hooks", code=3)
    assert f"{home.project}/.crush.json:2: " in run.err


def test_strict_hooks_names_the_plugins_that_wait_beside_the_hook(home: HomeDir) -> None:
    model(home)
    project(home)
    folder = home.project / ".cru" / "plugins"
    folder.mkdir(parents=True)
    (folder / "a.lua").write_text("return 1")
    (folder / "b.lua").write_text("return 1")
    run = turn(home, "--strict-hooks", code=3)
    assert "not every hook and plugin that is there can run:" in run.err
    assert f"{home.project}/crush.json:1: ./hook.sh: untrusted" in run.err
    assert all(f"{folder}/{name}.lua: awaits that you accept it (cru trust)" in run.err for name in "ab")
    assert "`cru hooks review` shows what awaits trust; `cru trust` shows the plugins" in run.err
    trust_all(home)
    run = turn(home, "--strict-hooks", code=3)
    assert "2 plugins of this project are not loaded" in run.err and "hook.sh" not in run.err


# other programs' own files --------------------------------------------------------------------------------------------------------


def test_hooks_of_another_program_are_off_until_they_are_accepted_once(home: HomeDir) -> None:
    model(home)
    foreign(home)
    assert "~/.config/crush/crush.json has 1 hook, off: `cru hooks review`" in turn(home).err
    assert ran(home) == 0
    assert cru("hooks", "review", "--trust", "crush", home=home).code == 0
    assert 'dialects = ["crush"]' in (home.cru / "config.toml").read_text()
    turn(home)
    assert ran(home) == 1
    foreign(home, 'echo ran >> "$CRUSH_CWD/ran"', 'echo ran >> "$CRUSH_CWD/ran" # new')
    assert "off" not in turn(home).err
    assert ran(home) == 2


def test_hooks_of_another_program_that_were_refused_stay_silent(home: HomeDir) -> None:
    model(home)
    foreign(home)
    assert cru("hooks", "review", "--refuse", "crush", home=home).code == 0
    assert turn(home).err.count("hook") == 0 and ran(home) == 0
    assert [row["state"] for row in rows(home)] == ["refused"]
    assert cru("hooks", "review", "--trust", "crush", home=home).code == 0
    turn(home)
    assert ran(home) == 1


def test_odd_things_in_another_programs_file_that_is_off_are_its_own_affair(home: HomeDir) -> None:
    model(home)
    path = foreign(home)
    path.write_text('{"hooks": {"PreToolUse": [{"command": "true", "matcher": "(?=x)"}]}}')
    assert "looks around" not in turn(home).err


# files that cannot be used --------------------------------------------------------------------------------------------------------


@pytest.mark.sample(2)
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version": 1, "hooks": 5}', b'{"version": 99}', b"\xff"])
def test_a_trust_file_that_cannot_be_used_trusts_nothing_and_says_so(home: HomeDir, content: bytes) -> None:
    model(home)
    project(home)
    trust_all(home)
    (home.cru / "trust.json").write_bytes(content)
    run = turn(home)
    assert "trust.json: " in run.err and "awaits trust" in run.err and ran(home) == 0


def test_an_error_in_one_file_names_the_line_and_the_others_still_work(home: HomeDir) -> None:
    model(home)
    project(home)
    (home.project / ".crush.json").write_text('{\n "hooks": {\n  "PreToolUse": [}\n}')
    trust_all(home)
    run = turn(home)
    assert f"{home.project}/.crush.json:3: not JSON" in run.err and ran(home) == 1


def test_a_file_that_cannot_be_read_is_named(home: HomeDir) -> None:
    model(home)
    project(home)
    (home.project / ".crush.json").mkdir()
    (home.project / ".crush").mkdir()
    os.mkfifo(home.project / ".crush" / "crush.json")
    trust_all(home)
    run = turn(home)
    assert ".crush.json: cannot be read: Is a directory" in run.err and ran(home) == 1
    assert ".crush/crush.json: cannot be read: it is not a regular file" in run.err
    (home.project / ".crush.json").rmdir()
    (home.project / ".crush.json").write_bytes(b'{"hooks": "\xff"}')
    assert ".crush.json: not UTF-8" in turn(home).err


@pytest.mark.slow
def test_two_people_who_review_at_once_lose_nothing(home: HomeDir) -> None:
    project(home, *(f"./hook.sh {number}" for number in range(8)))
    ids = seen(home)
    threads = [
        threading.Thread(target=cru, args=("hooks", "review", "--trust", one), kwargs={"home": home}) for one in ids
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {row["state"] for row in rows(home)} == {"active"}


# while a session runs -------------------------------------------------------------------------------------------------------------


def test_changed_files_count_from_the_next_prompt_on_and_nothing_runs_twice(home: HomeDir) -> None:
    model(
        home,
        CALLS + "---\n" + CALLS.partition("\n")[2] + "---\n" + CALLS.partition("\n")[2],
        '[hooks]\ndialects = ["crush"]\n',
    )
    path = foreign(home)
    with pty(home=home) as terminal:
        terminal.expect("> ")
        terminal.line("one")
        terminal.expect("Done.")
        assert ran(home) == 1
        foreign(home, 'echo ran >> "$CRUSH_CWD/ran"', 'echo ran >> "$CRUSH_CWD/ran" # two')
        terminal.line("two")
        terminal.expect("Done.")
        assert ran(home) == 2
        path.unlink()
        terminal.line("three")
        terminal.expect("Done.")
        assert ran(home) == 0
        assert terminal.eof() == 0


def test_a_project_file_that_comes_later_is_a_stranger(home: HomeDir) -> None:
    model(home, CALLS + "---\n" + CALLS.partition("\n")[2])
    with pty(home=home) as terminal:
        terminal.expect("> ")
        terminal.line("one")
        terminal.expect("Done.")
        project(home)
        terminal.line("two")
        terminal.expect("1 project hook awaits trust")
        terminal.expect("Done.")
        assert terminal.eof() == 0
    assert ran(home) == 0


def test_the_home_folder_as_project_asks_no_trust_for_the_users_own_files(home: HomeDir) -> None:
    (home.path / ".crush").mkdir()
    model(home, config='[hooks]\ndialects = ["crush"]\n')
    foreign(home)
    run = turn(home, cwd=home.path / ".config" / "crush")
    assert "trust" not in run.err and (home.path / ".config" / "crush" / "ran").exists()


# the start ------------------------------------------------------------------------------------------------------------------------


def test_without_files_nothing_of_the_room_is_loaded(home: HomeDir) -> None:
    model(home, "text: ok\n")
    (home.path / ".claude").mkdir()
    (home.path / ".claude" / "settings.json").write_text('{"model": "opus", "theme": "dark"}')
    room = {name for name in loaded(home, "hi") if f"{name}.".startswith("cru.core.hooks.")}
    assert room == WITHOUT_HOOKS


# the other dialects ---------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "event"),
    [
        (".claude/settings.json", "PreToolUse"),
        (".claude/settings.local.json", "PreToolUse"),
        (".codex/hooks.json", "PreToolUse"),
        (".gemini/settings.json", "BeforeTool"),
        (".cru/hooks.json", "tool:before_call"),
    ],
)
def test_every_dialect_waits_for_trust_in_a_project(home: HomeDir, file: str, event: str) -> None:
    model(home)
    script = project(home)
    (home.project / "crush.json").unlink()
    script.write_text("#!/bin/sh\necho ran >> ran\n")
    entry: dict[str, Any] = {"command": '"$CLAUDE_PROJECT_DIR"/hook.sh'}
    if not file.startswith(".cru/"):
        entry = {"hooks": [{"type": "command", **entry}]}
    (home.project / file).parent.mkdir(parents=True, exist_ok=True)
    (home.project / file).write_bytes(msgspec.json.encode({"hooks": {event: [entry]}}))
    assert "1 project hook awaits trust" in turn(home).err and ran(home) == 0
    shown = cru("hooks", "review", home=home).out
    assert "2 │ echo ran >> ran" in shown and "CANNOT SEE" not in shown
    trust_all(home)
    turn(home)
    assert ran(home) == 1
    script.write_text("#!/bin/sh\necho ran >> ran # changed\n")
    assert "that you trusted has changed" in turn(home).err and ran(home) == 0


@pytest.mark.slow
def test_entries_of_config_toml_are_judged_one_by_one_without_trust_in_the_file(home: HomeDir) -> None:
    model(home)
    (home.project / ".cru").mkdir()
    entry = '[[hooks.entries]]\nevent = "tool:before_call"\ncommand = "echo ran >> ran"\n'
    (home.project / ".cru" / "config.toml").write_text(entry)
    run = turn(home)
    assert "1 project hook awaits trust" in run.err and "is ignored" not in run.err and ran(home) == 0
    trust_all(home)
    turn(home)
    assert ran(home) == 1
    (home.project / ".cru" / "config.toml").write_text('[hooks]\ndialects = ["claude"]\n\n' + entry)
    run = turn(home)
    assert "`hooks.dialects` is ignored: this project is not trusted" in run.err and ran(home) == 1


def test_an_own_hook_of_the_user_needs_no_trust(home: HomeDir) -> None:
    model(home, config='[[hooks.entries]]\nevent = "tool:before_call"\ncommand = "echo ran >> ran"\n')
    assert turn(home).err.count("trust") == 0 and ran(home) == 1
    only = rows(home)[0]["id"]
    assert "needs no trust" in cru("hooks", "review", "--trust", only, home=home).err
