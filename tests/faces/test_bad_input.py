"""Broken files, wrong names, full disks: a clear message, the right exit code, no traceback, and nothing lost."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.kit import Call, Done, Drop, HomeDir, Reply, Status, cru, server
from tests.kit.sandbox import needs_mounts

# Root may write anywhere; without these capabilities it may not.
PLAIN = "setpriv --bounding-set=-dac_override,-dac_read_search --inh-caps=-dac_override,-dac_read_search"
ROOT = os.geteuid() == 0
needs_setpriv = pytest.mark.skipif(ROOT and not shutil.which("setpriv"), reason="needs setpriv to be a plain user")


def assert_clear_error(run: Done, code: int, *parts: str) -> None:
    """A message for people."""
    assert run.code == code, run
    assert "Traceback" not in run.err and run.err.startswith("cru: ")
    for part in parts:
        assert part in run.err, run.err


def plain(home: HomeDir, command: str) -> Done:
    """A shell command without root's powers."""
    line = f"{PLAIN} sh -c '{command}'" if ROOT else command
    done = subprocess.run(["sh", "-c", line], env=home.env, cwd=home.project, capture_output=True, text=True)
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("config", "parts"),
    [
        ('modle = "x"\n', ("config.toml:4: unknown setting `modle`", "`model`")),
        ("fuel = true\n", ("config.toml:4: `fuel`: expected a whole number",)),
        ("fuel = [\n", ("config.toml:4: not TOML",)),
        ("[permissions]\nalow = []\n", ("config.toml:5:", "`permissions.allow`")),
        ('mode = "plann"\n', ("config.toml:4:", "`plan`")),
    ],
)
def test_a_broken_config_is_named_with_file_line_key_and_the_closest_name(
    home: HomeDir, config: str, parts: tuple[str, ...]
) -> None:
    with server([]) as model:
        home.configure(config, url=model.url)
        run = cru("hi", home=home)
    assert_clear_error(run, 1, *parts)
    assert run.out == "" and not model.requests


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"fuel = [\n", "config.toml:1: not TOML"),
        (b"model = '\xff'\n", "config.toml:1: not UTF-8"),
        (b"[permissions]\nask = 5\n", "config.toml:2: `permissions.ask`: expected a list"),
    ],
)
def test_what_is_broken_in_the_config_of_a_project_is_ignored_and_named(home: HomeDir, text: bytes, said: str) -> None:
    """Any repository could keep cru from starting in it."""
    (home.project / ".cru").mkdir()
    (home.project / ".cru" / "config.toml").write_bytes(text)
    with server([Reply("Fine.")]) as model:
        home.configure(url=model.url)
        run = cru("hi", home=home)
    assert (run.code, run.out) == (0, "Fine.\n") and "Traceback" not in run.err
    assert said in run.err and "is ignored" in run.err


UNREADABLE = {
    'deny = ["bash:rm *", "Bash(mv:*)"]': "rule `Bash(mv:*)` is not of the form",
    'deny = ["(", "bash:rm *"]': "rule `(` is not of the form",
    'deny = ["bash:rm *", "write:"]': "rule `write:` has nothing behind the colon",
    'deny = ["", "bash:rm *"]': "rule `` has no tool",
    'deny = [5, "bash:rm *"]': "expected text",
    'deny = ["bash:rm *"]\nask = 5': "`permissions.ask`: expected a list",
    'deny = ["bash:rm *"]\nask = "bash:ls"': "`permissions.ask`: expected a list",
    'deny = ["bash:rm *"]\nask = ["Read(./x)"]': "rule `Read(./x)` is not of the form",
}


@pytest.mark.parametrize("text", UNREADABLE)
def test_a_rule_that_cannot_be_read_takes_no_other_with_it(home: HomeDir, text: str) -> None:
    """The rules of a project refuse before it is trusted: one that is written in another program's way opened them all."""
    (home.project / ".cru").mkdir()
    (home.project / ".cru" / "config.toml").write_text(f"[permissions]\n{text}\n")
    said = cru("permissions", "test", "bash", '{"command": "rm x"}', home=home)
    assert said.out.startswith("deny ") and UNREADABLE[text] in said.err, said
    with server([]) as model:
        home.configure(url=model.url)
        run = cru("--strict-hooks", "hi", home=home)
    assert run.code != 0 and UNREADABLE[text] in run.err and not model.requests


@pytest.mark.parametrize(
    "text", ['permissions = ["bash:rm *"]', "permissions = 5", '[[permissions]]\ndeny = ["bash:rm *"]']
)
def test_rules_in_no_table_are_a_lost_guard(home: HomeDir, text: str) -> None:
    """They were taken for a setting that counts once the project is trusted."""
    (home.project / ".cru").mkdir()
    (home.project / ".cru" / "config.toml").write_text(f"{text}\n")
    assert "`permissions`: expected a table" in cru("hi", home=home).err
    with server([]) as model:
        home.configure(url=model.url)
        run = cru("--strict-hooks", "hi", home=home)
    assert run.code == 3 and "`permissions`: expected a table" in run.err and not model.requests


def test_a_config_that_is_not_text_is_named(home: HomeDir) -> None:
    home.configure("")
    (home.cru / "config.toml").write_bytes(b"model = '\xff'\n")
    assert_clear_error(cru("hi", home=home), 1, "config.toml")


@pytest.mark.parametrize("name", ["a/b", "..", "", "x" * 201, "ä", "-x", "a b", "new:"])
@pytest.mark.parametrize("flag", ["-c", "-C", "-D"])
def test_a_bad_context_name_is_a_usage_error_and_makes_nothing(home: HomeDir, flag: str, name: str) -> None:
    why = "needs a prefix" if name == "new:" and flag != "-D" else "not a name for a context"
    assert_clear_error(cru(flag, name, "hi", home=home), 2, why)
    assert not (home.cru / "contexts").exists() or not any((home.cru / "contexts").iterdir())


@pytest.mark.parametrize("words", [("-A", "wrok"), ("-G", "wrok", "1"), ("-R", "wrok", "x"), ("-Y", "wrok", "x")])
def test_a_context_that_does_not_exist_is_named_with_the_closest_one(home: HomeDir, words: tuple[str, ...]) -> None:
    cru("-c", "work", home=home)
    assert_clear_error(cru(*words, home=home), 1, "there is no context 'wrok'", "work")


def test_renaming_onto_another_context_changes_nothing(home: HomeDir) -> None:
    cru("-C", "a", "-l", home=home)
    cru("-C", "b", "-l", home=home)
    assert_clear_error(cru("-R", "a", "b", home=home), 1, "'b'")
    assert home.context("a").is_dir() and home.context("b").is_dir()


def test_unreadable_and_torn_log_lines_are_reported_skipped_and_kept(home: HomeDir) -> None:
    with server([Reply("one"), Reply("two"), Reply("three")]) as model:
        home.configure(url=model.url)
        cru("a", home=home)
        path = home.context() / "context.jsonl"
        broken = b"not json\n" + path.read_bytes() + b'{"id": "torn'
        path.write_bytes(broken)
        count = broken.count(b"\n") + 1
        run = cru("b", home=home)
        assert run.code == 0 and run.out == "two\n"
        assert "context.jsonl:1: not an entry, skipped" in run.err and f"context.jsonl:{count}: " in run.err
        assert path.read_bytes().startswith(broken + b"\n")
        listed = cru("-g", "0", home=home)
        assert listed.out == "[USER]: a\n[DEFAULT]: one\n[USER]: b\n[DEFAULT]: two\n"
        assert listed.err == ""  # told once, above
        assert cru("c", home=home).out == "three\n"
    assert [m["content"] for m in model.requests[2].body["messages"][1:]] == ["a", "one", "b", "two", "c"]


def test_a_corrupt_state_file_is_reported_and_contexts_are_not_lost(home: HomeDir) -> None:
    cru("-c", "work", home=home)
    (home.cru / "state.json").write_text("{broken")
    with server([Reply("ok")]) as model:
        home.configure(url=model.url)
        run = cru("hi", home=home)
    assert run.code == 0 and f"{home.cru}/state.json" in run.err and "state.json:0" not in run.err
    assert "work" in cru("-L", home=home).out


def test_a_missing_key_says_where_it_goes(home: HomeDir) -> None:
    run = cru("--model", "anthropic:claude-sonnet-4-5", "hi", home=home)
    assert_clear_error(run, 5, "anthropic needs a key", "ANTHROPIC_API_KEY", "resume with:")


@pytest.mark.parametrize("step", [Status(400), Reply("so far", error="overloaded"), Reply("so far", error="x" * 9000)])
def test_a_model_that_fails_leaves_a_complete_log(home: HomeDir, step: Status | Reply) -> None:
    with server([step] * 9) as model:
        home.configure(url=model.url)
        run = cru("hi", home=home)
    assert run.code == 1 and "Traceback" not in run.err and run.err.endswith("resume with: cru -C default --resume\n")
    assert home.log()[-1]["metadata"]["cause"] == "error" and home.log()[0]["content"] == "hi"


def test_a_model_gone_mid_stream_keeps_what_was_said(home: HomeDir) -> None:
    with server([Drop(after_bytes=420, reply=Reply("one two three four five six", pieces=4))] * 9) as model:
        home.configure(url=model.url)
        run = cru("hi", home=home)
    assert run.code == 1 and "Traceback" not in run.err and "connection broke" in run.err
    assert home.log()[-1]["metadata"]["cause"] == "error"


def test_escape_sequences_of_a_server_do_not_reach_the_terminal(home: HomeDir) -> None:
    with server([Status(400, body="bad \x1b[2J thing")]) as model:
        home.configure(url=model.url)
        run = cru("hi", home=home)
    assert "\x1b" not in run.err and "bad" in run.err


@pytest.mark.sample(1)
@needs_setpriv
@pytest.mark.parametrize("words", ["", "-L", "-l", "-g 0", "-n todos", "trace"])
def test_a_read_only_home_is_told_and_can_still_be_read(home: HomeDir, words: str) -> None:
    with server([Reply("ok")]) as model:
        home.configure(url=model.url)
        cru("hi", home=home)
        folders = [p for p in (home.cru, *home.cru.rglob("*")) if p.is_dir()]
        files = [p for p in home.cru.rglob("*") if p.is_file()]
        for path in (*files, *folders):
            path.chmod(0o400 if path in files else 0o500)
        try:
            if words:
                run = plain(home, f"cru {words}")
                assert run.code == 0 and run.err == "" and run.out, run
            else:
                assert_clear_error(plain(home, "cru again"), 1, "cannot write", "--home")
            assert len(model.requests) == 1
        finally:
            for path in folders:
                path.chmod(0o700)


@needs_setpriv
def test_a_home_that_cannot_be_made_is_told(home: HomeDir) -> None:
    home.path.chmod(0o500)
    try:
        assert_clear_error(plain(home, "cru hi"), 1, "cannot write", "--home")
    finally:
        home.path.chmod(0o700)


@pytest.mark.parametrize("flag", [True, False])
def test_a_home_that_is_a_file_is_told(home: HomeDir, flag: bool) -> None:
    path = home.path / "file"
    path.write_text("")
    run = cru("--home", str(path), "hi", home=home) if flag else cru("hi", home=home, env={"CRU_HOME": str(path)})
    assert_clear_error(run, 1, str(path))


def on_small_disk(home: HomeDir, command: str) -> Done:
    """With the contexts on a disk of 64 KiB."""
    folder = home.cru / "contexts"
    folder.mkdir(parents=True, exist_ok=True)
    script = (
        f"mount -t tmpfs -o size=64k none {folder} && {command}; code=$?; cp -r {folder} {home.path}/kept; exit $code"
    )
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], env=home.env, cwd=home.project, capture_output=True, text=True
    )
    return Done(done.returncode, done.stdout, done.stderr)


@needs_mounts
def test_a_full_disk_ends_the_turn_with_the_way_to_resume_and_a_readable_log(home: HomeDir) -> None:
    with server([Reply("word " * 20_000), Reply("short")]) as model:
        home.configure(url=model.url)
        run = on_small_disk(home, "cru hi")
    assert run.code == 1 and "Traceback" not in run.err, run.err
    assert "No space left on device" in run.err and "resume with: cru -C default --resume" in run.err
    assert run.err.count("No space left") < 4
    log = (home.path / "kept" / "default" / "context.jsonl").read_bytes()
    assert b'"content":"hi"' in log


def test_a_working_directory_that_is_gone_is_told(home: HomeDir) -> None:
    command = f"mkdir {home.path}/gone && cd {home.path}/gone && rmdir {home.path}/gone && cru hi"
    done = subprocess.run(["sh", "-c", command], env=home.env, capture_output=True, text=True, cwd=home.path)
    said = "".join(
        line for line in done.stderr.splitlines(keepends=True) if not line.startswith("sh: ")
    )  # a script's own shell
    assert_clear_error(Done(done.returncode, done.stdout, said), 2, "working directory does not exist")


@pytest.mark.parametrize(
    "words", [("--project-root", "~nobody-here/x"), ("--project-root", "none"), ("--home", os.fsdecode(b"\xff"))]
)
def test_folders_that_cannot_be_used_are_usage_errors(home: HomeDir, words: tuple[str, ...]) -> None:
    assert_clear_error(cru(*words, "hi", home=home), 2)


def test_a_project_with_a_name_that_is_not_utf_8_is_told(home: HomeDir) -> None:
    folder = Path(os.fsdecode(os.fsencode(home.path) + b"/caf\xe9"))
    folder.mkdir()
    assert_clear_error(cru("hi", home=home, cwd=folder), 2, "not UTF-8")


def test_file_names_that_are_not_utf_8_do_not_break_a_tool(home: HomeDir) -> None:
    Path(os.fsdecode(os.fsencode(home.project) + b"/caf\xe9.txt")).write_text("x")
    with server([Reply(calls=[Call("ls", {}), Call("glob", {"pattern": "*"})]), Reply("ok")]) as model:
        home.configure(url=model.url)
        run = cru("hi", home=home)
    assert (run.code, run.out) == (0, "ok\n")
