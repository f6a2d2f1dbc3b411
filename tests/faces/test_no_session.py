"""`--no-session`: a run and a chat that leave nothing."""

from __future__ import annotations

import os
import signal
import stat
from pathlib import Path

import msgspec
import pytest
from tests.kit import Call, Hang, HomeDir, Reply, cru, pty, server, start, wait_until

from cru.core.conversations.home import private_parents
from cru.core.conversations.private import PrivateFolder, sweep


def held(home: HomeDir) -> dict[str, bytes]:
    """Every file of the home but what only saves time."""
    cache = home.cru / "cache"
    files = (path for path in home.path.rglob("*") if path.is_file() and not path.is_relative_to(cache))
    return {str(path): path.read_bytes() for path in files}


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "tmp").mkdir()
    return {"TMPDIR": str(tmp_path / "tmp")}


def private_runs(env: dict[str, str]) -> list[Path]:
    return list(Path(env["TMPDIR"]).glob("cru-*/run-*"))


def remains(env: dict[str, str]) -> list[str]:
    return os.listdir(env["TMPDIR"])


def test_a_run_changes_no_context_and_its_own_is_gone_with_it(home: HomeDir, env: dict[str, str]) -> None:
    write = Reply(calls=[Call("write", {"file_path": "made.txt", "content": "new"})])
    with server([Reply("kept"), write, Reply("private"), Reply("alone")]) as model:
        home.configure(url=model.url)
        assert cru("-c", "work", "one", home=home, env=env).code == 0
        before = held(home)
        run = cru("--no-session", "-t", "two", home=home, env=env)
        assert (run.code, run.out) == (0, "private\n") and "resume" not in run.err
        assert (home.project / "made.txt").read_text() == "new"
        offered = {tool["function"]["name"] for tool in model.requests[1].body["tools"]}
        assert "read" in offered and offered.isdisjoint({"read_context", "send_message", "update_reflection"})
        assert [m["content"] for m in model.requests[1].body["messages"][1:]] == ["two"]
        nowhere = ("--home", "/proc/none", "-s", "model=mock", "-s", f"base_url={model.url}", "-s", "api_key=kit-key")
        assert cru(*nowhere, "--no-session", "three", home=home, env=env).out == "alone\n"
    assert held(home) == before and remains(env) == []


@pytest.mark.parametrize(
    "words",
    [("-c", "other"), ("-C", "other"), ("--resume",), ("-l",), ("-a",), ("--debug", "all"), ("--idempotency-key", "k")],
)
def test_flags_about_a_context_are_refused(home: HomeDir, env: dict[str, str], words: tuple[str, ...]) -> None:
    run = cru("--no-session", *words, home=home, env=env)
    assert (run.code, run.out) == (2, "")
    assert run.err == (
        f"cru: {words[0]} does not go with --no-session, which has no context to keep\n  leave one of them out\n"
    )
    assert held(home) == {} and remains(env) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1])
def test_a_signal_leaves_nothing_either(home: HomeDir, env: dict[str, str], number: int) -> None:
    with server([Hang("so far")]) as model:
        home.configure(url=model.url)
        before = held(home)
        with start("--no-session", "hi", home=home, env=env) as run:
            run.wait_for("so far")
            (folder,) = private_runs(env)
            assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
            run.signal(number)
            done = run.wait()
    assert done.code in (128 + number, -number) and "resume" not in done.err
    assert held(home) == before and remains(env) == []


def test_what_a_kill_leaves_goes_at_the_next_start_and_what_runs_stays(home: HomeDir, env: dict[str, str]) -> None:
    with server([Hang("so far"), Hang("so far"), Reply("next")]) as model:
        home.configure(url=model.url)
        with start("--no-session", "hi", home=home, env=env) as lives:
            lives.wait_for("so far")
            (kept,) = private_runs(env)
            with start("--no-session", "hi", home=home, env=env) as run:
                run.wait_for("so far")
                run.kill()
                wait_until(lambda: not run.alive)
                assert len(private_runs(env)) == 2
                assert cru("hi", home=home, env=env).out == "next\n"
            assert private_runs(env) == [kept] and lives.alive
    lives_ended = cru("-L", home=home, env=env)
    assert lives_ended.code == 0 and remains(env) == []


def test_a_hook_reads_a_transcript_that_goes_away(home: HomeDir, env: dict[str, str]) -> None:
    copy = home.project / "copy.json"
    command = f'cat > {copy}; test -s "$(sed \'s/.*"transcript_path":"\\([^"]*\\)".*/\\1/\' {copy})" && touch {home.project}/read'
    settings = home.path / ".claude" / "settings.json"
    settings.parent.mkdir()
    hook = {"hooks": [{"type": "command", "command": command}]}
    settings.write_bytes(msgspec.json.encode({"hooks": {"Stop": [hook]}}))
    with server([Reply("answer")]) as model:
        home.configure(url=model.url)
        assert cru("--no-session", "--hooks", "all", "hi", home=home, env=env).code == 0
    path = msgspec.json.decode(copy.read_bytes())["transcript_path"]
    assert path.startswith(env["TMPDIR"]) and (home.project / "read").exists() and not os.path.exists(path)
    assert remains(env) == []


def test_a_chat_is_not_remembered(home: HomeDir, env: dict[str, str]) -> None:
    with server([Reply("first answer"), Reply("second answer")]) as model:
        home.configure(url=model.url)
        before = held(home)
        with pty("--no-session", home=home, env={**env, "TERM": "xterm"}) as terminal:
            terminal.expect("nothing of this chat is kept")
            terminal.expect("> ")
            terminal.line("one")
            terminal.expect("first answer")
            terminal.line("two")
            terminal.expect("second answer")
            assert terminal.eof() == 0
            assert "this conversation" not in terminal.text and "resume" not in terminal.text
    assert len(model.requests[1].body["messages"]) == 4
    assert held(home) == before and remains(env) == []


def test_no_folder_is_made_where_somebody_else_could_look(tmp_path: Path, home: HomeDir, env: dict[str, str]) -> None:
    (parent,) = private_parents(env)
    os.mkdir(parent, 0o777)
    os.chmod(parent, 0o777)
    run = cru("--no-session", "hi", home=home, env=env)
    assert run.code == 1 and run.err.endswith("  set TMPDIR to a folder of yours\n") and parent in run.err
    sweep(parent)
    assert os.path.isdir(parent) and os.listdir(parent) == []
    os.rmdir(parent)
    folder = PrivateFolder(env)
    assert folder.remove() == "" and folder.remove() == "" and remains(env) == []


def test_an_answer_for_good_holds_to_the_end_of_the_session(home: HomeDir, env: dict[str, str]) -> None:
    touch = Call("bash", {"command": "touch made"})
    with server([Reply(calls=[touch]), Reply(calls=[touch]), Reply("ok")]) as model:
        home.configure(url=model.url)
        before = held(home)
        with pty("--no-session", "hi", home=home, env=env) as terminal:
            terminal.expect("no > ")
            terminal.send("a")
            assert terminal.wait() == 0
    assert terminal.text.count("no > ") == 1 and "with --no-session no answer is kept" in terminal.text
    assert (home.project / "made").exists() and held(home) == before and remains(env) == []
