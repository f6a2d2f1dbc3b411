"""What a person reads of hooks: one truth, the next step, and no dead ends."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import msgspec
import pytest
from tests.faces.hooked import CALLS, claude, crush, hooks, ids, model, script
from tests.faces.hooks_home import project, trust_all
from tests.kit import HomeDir, Reply, cru, pty, server

from cru.core.command_table import COMMANDS
from cru.faces.cli.fsm import command as fsm
from cru.faces.cli.hooks.command import VERBS
from cru.faces.cli.plugin import command as plugin


def own(home: HomeDir, *entries: dict[str, Any]) -> None:
    home.cru.mkdir(exist_ok=True)
    (home.cru / "hooks.json").write_bytes(msgspec.json.encode({"hooks": entries}))


def test_a_strangers_codex_file_with_a_list_for_a_type_does_not_stop_a_start(home: HomeDir) -> None:
    model(home)
    (home.project / ".codex").mkdir()
    text = '{"hooks": {"PreToolUse": [{"hooks": [{"type": [], "command": "true"}, {"type": "command", "command": "a\\u0000"}]}]}}'
    (home.project / ".codex" / "hooks.json").write_text(text)
    run = cru("--hooks=all", "hello", home=home)
    assert (run.code, run.out) == (0, "Done.\n") and "Traceback" not in run.err
    assert run.err.count(".codex/hooks.json:1: the hook is left out: ") == 2
    assert "`type` must be one of" in run.err and "a text in it has a NUL character" in run.err
    for words in (("list",), ("review",), ("check",), ("why",)):
        assert "Traceback" not in cru("hooks", *words, home=home).err


# interrupted before anything was loaded -------------------------------------------------------------------------------------------

EARLY = """
import sys
from importlib.abc import MetaPathFinder

class Pressed(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "cru.faces.cli.flags":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Pressed())
sys.argv = ["cru", "hello"]
from cru.faces.cli.main import main
main()
"""


def test_ctrl_c_while_cru_is_loaded_is_no_traceback(home: HomeDir) -> None:
    done = subprocess.run([sys.executable, "-c", EARLY], env=home.env, cwd=home.project, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "cru: interrupted\n")


# words that are nearly a command --------------------------------------------------------------------------------------------------


def test_the_table_of_commands_has_their_verbs() -> None:
    assert set(COMMANDS["hooks"].verbs) == set(VERBS)
    assert set(COMMANDS["plugin"].verbs) == set(plugin.SWITCHES) and set(COMMANDS["fsm"].verbs) == set(fsm.SWITCHES)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("version", "did you mean: cru --version"),
        ("doctr", "did you mean: cru doctor"), ("permisions", "did you mean: cru permissions"), ("session", "did you mean: cru sessions"),
    ],
)  # fmt: skip
def test_one_word_at_a_terminal_that_is_nearly_a_command_is_no_prompt(home: HomeDir, word: str, said: str) -> None:
    with server([Reply("answered")] * 2) as asked:
        home.configure(url=asked.url)
        with pty(word, home=home) as terminal:
            terminal.expect(said)
            terminal.expect(f"as a prompt: cru -- {word}")
            assert terminal.wait() == 2
        assert not asked.requests
        assert cru(word, home=home).out == "answered\n"  # a script means what it says
        with pty("hello", home=home) as terminal:
            terminal.expect("answered")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("hook", "list"), "did you mean: cru hooks list\n  as a prompt: cru -- hook list\n"),
        (("Hooks", "why", "bash"), "did you mean: cru hooks why bash\n"),
        (("plugins", "list"), "did you mean: cru plugin list\n"),
        (("hooks", "lsit"), "did you mean: cru hooks list\n  as a prompt: cru -- hooks lsit\n"),
        (("hooks", "revoke", "x"), "`cru trust --revoke` forgets a project"),
        (("hooks", "frobnicate"), "it takes: list, review, "),
    ],
)
def test_what_is_nearly_a_command_is_not_sent_to_the_model(home: HomeDir, words: tuple[str, ...], said: str) -> None:
    model(home)
    run = cru(*words, home=home)
    assert run.code == 2 and run.out == "" and said in run.err


@pytest.mark.parametrize(
    "words", [("hook", "up", "the", "parser"), ("list", "hooks"), ("hook list",), ("--", "hook", "list")]
)
def test_other_words_are_a_prompt(home: HomeDir, words: tuple[str, ...]) -> None:
    model(home, "text: Fine.\n")
    assert cru(*words, home=home).out == "Fine.\n"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_its_help(home: HomeDir, verb: str) -> None:
    run = cru("hooks", verb, "--help", home=home)
    assert run.code == 0 and run.out.startswith("cru hooks ") and verb in run.out and run.err == ""


# what there is, by name -----------------------------------------------------------------------------------------------------------


def test_a_hook_is_known_by_its_name_too(home: HomeDir) -> None:
    model(home)
    crush(
        home,
        {"name": "guard", "command": "true"},
        {"name": "two", "command": "true"},
        {"name": "two", "command": "false"},
    )
    assert ids(home)["guard"] in hooks(home, "disable", "guard").out
    hooks(home, "enable", "guard")
    assert "two may be crush-" in hooks(home, "disable", "two", code=1).err


def test_the_list_shows_no_secrets(home: HomeDir) -> None:
    model(home)
    crush(home, {"command": "curl -H 'Authorization: Bearer abcdefgh12345678' x"})
    for words in (("list",), ("list", "--json")):
        out = hooks(home, *words).out
        assert "abcdefgh" not in out and "[hidden]" in out


def test_the_tool_of_a_trial_is_a_tool(home: HomeDir) -> None:
    model(home)
    own(home, {"event": "PreToolUse", "command": "cat"})
    run = hooks(home, "test", "PreToolUse", "--tool", "Bsh", code=1)
    assert "there is no tool Bsh" in run.err and "did you mean `bash`?" in run.err
    assert '"tool_name":"my_plugins_tool"' in hooks(home, "test", "PreToolUse", "--tool", "my_plugins_tool").out
    assert '"kind":"shell"' in hooks(home, "test", "PreToolUse").out


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (
            {"event": "Notification", "command": "true"},
            "Notification of claude is `interaction:requested` or `session:idle` here",
        ),
        ({"event": "BeforeTool", "command": "true"}, "BeforeTool of gemini is `tool:before_call` here"),
        ({"event": "PreToolUse", "cmd": "true"}, "`cmd` is not known here (did you mean `command`?)"),
        ({"event": "PreToolUse", "command": "true", "lua": "return"}, "needs exactly one of"),
    ],
)
def test_what_others_write_is_told_in_our_words(home: HomeDir, entry: dict[str, Any], said: str) -> None:
    model(home)
    own(home, entry)
    assert said in hooks(home, "check", code=1).out


# what a run says ------------------------------------------------------------------------------------------------------------------


def test_strict_names_the_command_that_shows_what_is_in_the_way(home: HomeDir) -> None:
    model(home)
    own(home, {"event": "PreToolUs", "command": "true"})
    run = cru("--strict-hooks", "hello", home=home)
    assert run.code == 3 and "cru hooks check" in run.err and "cru hooks review" not in run.err
    own(home)
    project(home)
    run = cru("--strict-hooks", "hello", home=home)
    assert run.code == 3 and "cru hooks review" in run.err and "cru hooks check" not in run.err


def test_a_terminal_says_which_hook_it_waits_for(home: HomeDir) -> None:
    model(home)
    crush(home, {"name": "slowly", "command": "sleep 1.6"})
    with pty("clean up", home=home) as terminal:
        terminal.expect("waiting for the hook slowly")
        terminal.expect("Done.")
        assert terminal.wait() == 0
    assert "waiting for" not in cru("clean up", home=home).err


def test_nobody_is_told_of_an_idle_prompt_where_nobody_sits(home: HomeDir) -> None:
    model(home, "text: Done.\n---\ntext: Done.\n")
    claude(home, {"command": "echo idle >>idle"}, event="Notification", matcher="idle_prompt")
    assert cru("clean up", home=home).code == 0
    assert not (home.project / "idle").exists()
    assert "nobody sat at a chat" in hooks(home, "why", "Notification").out
    with pty(home=home) as terminal:
        terminal.expect("> ")
        terminal.line("hello")
        terminal.expect("Done.")
        terminal.expect("> ")
        assert terminal.eof() == 0
    assert (home.project / "idle").read_text() == "idle\n"


def test_a_start_that_was_a_resume_says_what_hears_both(home: HomeDir) -> None:
    model(home, "text: Done.\n---\ntext: Done.\n")
    claude(home, {"command": "true"}, event="SessionStart", matcher="startup")
    cru("one", home=home)
    cru("two", home=home)
    assert "its matcher `startup` does not fit resume: " in hooks(home, "why").out
    assert "`startup|resume` hears both" in hooks(home, "why").out


def test_standard_output_of_a_command_that_prints_nothing_is_empty(home: HomeDir) -> None:
    model(home, CALLS.replace("echo hi", "true"))
    claude(home, {"command": "cat >seen"}, event="PostToolUse")
    cru("clean up", home=home)
    response = msgspec.json.decode((home.project / "seen").read_bytes())["tool_response"]
    assert response["stdout"] == "" and response["stderr"] == ""


def test_an_allow_of_gemini_is_said(home: HomeDir) -> None:
    model(home)
    path = home.path / ".gemini" / "settings.json"
    path.parent.mkdir()
    handler = {"type": "command", "command": 'echo \'{"decision": "allow"}\''}
    path.write_bytes(msgspec.json.encode({"hooks": {"BeforeTool": [{"hooks": [handler]}]}}))
    cru("clean up", home=home)
    assert "exit 0: allowed" in hooks(home, "why").out and "exit 0: allowed" in hooks(home, "log").out


def test_the_turn_of_codex_stays_the_same_in_a_continuation(home: HomeDir) -> None:
    model(home, "text: One.\n---\ntext: Two.\n")
    path = home.path / ".codex" / "hooks.json"
    path.parent.mkdir()
    ask = """cat >>seen; [ -e done ] || { touch done; echo '{"decision": "block", "reason": "go on"}'; }"""
    path.write_bytes(msgspec.json.encode({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": ask}]}]}}))
    assert cru("clean up", home=home).code == 0
    turns = [msgspec.json.decode(line)["turn_id"] for line in (home.project / "seen").read_bytes().splitlines()]
    assert len(turns) == 2 and len(set(turns)) == 1


def test_what_is_forgotten_is_counted_by_hooks(home: HomeDir) -> None:
    model(home)
    project(home)
    trust_all(home)
    script(home, "hook.sh", "#!/bin/sh\n# another\n")
    trust_all(home)
    assert "1 hook of this project: forgotten" in cru("trust", "--revoke", home=home).out


# guards that are lost ---------------------------------------------------------------------------------------------------------------


def test_a_guard_that_is_lost_tells_how_a_hook_becomes_a_must(home: HomeDir) -> None:
    model(home)
    crush(home, {"command": "./gone.sh"})
    goes_on = "the run goes on without hook ./gone.sh; to end the run instead, use `--strict-hooks`\n"
    assert f"cru: {goes_on}" in cru("hello", home=home).err
    claude(home, {"command": "./gone.sh"})
    own(home, {"event": "tool:before_call", "command": "./gone.sh"})
    err = cru("hello", home=home).err
    words = '; to refuse what it should judge, put `on_error = "deny"` or `"onFailure": "block"` into its entry; to end'
    assert words in err and err.count("the run goes on without") == 1


def test_a_guard_that_is_lost_and_refuses_is_not_told_how(home: HomeDir) -> None:
    model(home)
    claude(home, {"command": "./gone.sh", "onFailure": "block"})
    err = cru("hello", home=home).err
    assert "there is no ./gone.sh" in err and "goes on without" not in err


def test_of_lost_guards_those_that_refuse_are_not_named_as_open(home: HomeDir) -> None:
    model(home)
    entries: list[dict[str, Any]] = [{"command": f"./gone{number}.sh"} for number in range(5)]
    claude(home, *entries, {"command": "./must.sh", "onFailure": "block"})
    err = cru("hello", home=home).err
    line = next(line for line in err.splitlines() if "the run goes on without" in line)
    assert "hook ./gone0.sh, hook ./gone1.sh, hook ./gone2.sh and 2 more; to refuse" in line and "must.sh" not in line
