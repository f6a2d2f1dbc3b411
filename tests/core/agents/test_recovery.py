"""Tasks of a run that was killed: nothing that ended is lost, what was running is told as lost, once, and no worktree is left behind."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.core.agents.support import call, script
from tests.core.agents.test_worktree import git_project
from tests.kit import HomeDir, cru, home, pty, start
from tests.kit.waiting import wait_until

HANG = "call: ls {}\n---\ndelay: 600s\n"
ANSWER = "text: it is in README.md\n"


def configured(tmp_path: Path, main: str) -> HomeDir:
    """A home whose model says this until `use_later`."""
    made = home(tmp_path)
    made.configure(f'model = "{script(tmp_path, "main", main)}"\nmode = "trust"\n')
    return made


def use_later(tmp_path: Path, text: str = "text: I see\n") -> None:
    """From now on the model says this."""
    script(tmp_path, "main", f"loop: yes\n{text}")


def task_files(here: HomeDir) -> list[dict[str, object]]:
    found = [json.loads(file.read_text()) for file in here.context().glob("tasks/*/task.json")]
    return sorted(found, key=lambda record: record["created"])


def statuses(here: HomeDir) -> list[object]:
    return [record["status"] for record in task_files(here)]


def is_free(context: Path) -> bool:
    folder = os.open(context, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(folder)


def told(here: HomeDir) -> list[str]:
    """What the log has that tells of tasks."""
    return [entry["content"] for entry in here.log() if entry.get("metadata", {}).get("tasks")]


def calls_made(here: HomeDir) -> int:
    """How many sub-agents have made a call."""
    return sum(b"tool_call" in log.read_bytes() for log in here.context().glob("tasks/*/context.jsonl"))


def kill_when(here: HomeDir, *wanted: str) -> None:
    """Run, and kill -9 as soon as the tasks stand so."""
    with start("go", home=here) as run:
        wait_until(lambda: statuses(here) == list(wanted))
        wait_until(lambda: calls_made(here) >= wanted.count("running"))
        run.kill()


def test_an_answer_that_came_before_a_kill_is_told_once_in_the_next_run(tmp_path: Path) -> None:
    child = script(tmp_path, "child", ANSWER)
    here = configured(tmp_path, f"{call('explore', child, background=True)}\n---\n{HANG}")
    kill_when(here, "completed")
    use_later(tmp_path)
    (record,) = task_files(here)
    done = cru("and now?", home=here)
    assert (done.code, done.out) == (0, "I see\n")
    name = f"background task {record['id']} (sub-agent explore: do explore)"
    assert f"cru: {name} is done: `cru tasks show {record['id']}`; the model is told\n" in done.err
    assert told(here) == [f"[{name} is done]\nit is in README.md"]
    sent = [entry for entry in here.log() if entry["content"] in (told(here)[0], "and now?")]
    assert [entry["role"] for entry in sent] == ["user", "user"]  # before the prompt
    again = cru("and?", home=here)
    assert "is told" not in again.err and len(told(here)) == 1
    assert not list((here.context() / "tasks" / "untold").iterdir())


def test_a_long_answer_is_told_whole(tmp_path: Path) -> None:
    child = script(tmp_path, "child", f"text: {'long ' * 1000}the end\n")
    here = configured(tmp_path, f"{call('explore', child, background=True)}\n---\n{HANG}")
    kill_when(here, "completed")
    use_later(tmp_path)
    cru("and now?", home=here)
    assert told(here)[0].endswith("long the end")


def test_what_was_running_at_a_kill_is_told_as_lost(tmp_path: Path) -> None:
    deepest = script(tmp_path, "deepest", f"text: I dig\n{HANG}")
    child = script(tmp_path, "child", f"text: I look\n{call('general', deepest)}\n---\ntext: never\n")
    here = configured(tmp_path, f"{call('general', child, background=True)}\n---\ntext: I wait\n")
    kill_when(here, "running", "running")
    use_later(tmp_path)
    first, second = task_files(here)
    done = cru("go on", home=here)
    assert done.code == 0 and done.err.count("was running when cru was killed, and is lost") == 2
    (text,) = told(here)
    assert (
        f"[background task {first['id']} (sub-agent general: do general) was running when cru was killed, and is lost]"
        in text
    )
    assert "its last words: I look\n" in text and "its last words: I dig\n" in text
    assert str(here.context() / "tasks" / str(second["id"]) / "context.jsonl") in text
    assert statuses(here) == ["lost", "lost"]


@pytest.mark.sample(1)
@pytest.mark.parametrize("resume", [True, False])
def test_a_call_that_waited_for_a_sub_agent_is_told_as_lost_with_it(tmp_path: Path, resume: bool) -> None:
    child = script(tmp_path, "child", f"text: I look\n{HANG}")
    here = configured(tmp_path, f"{call('general', child)}\n---\ntext: never\n")
    kill_when(here, "running")
    use_later(tmp_path)
    done = cru(*(["--resume"] if resume else ["go on"]), home=here)
    assert (done.code, done.out) == (0, "I see\n")
    (text,) = told(here)
    assert text.startswith("[task ") and "was running when cru was killed, and is lost]" in text
    assert cru("and?", home=here).code == 0 and len(told(here)) == 1


def test_a_run_that_only_waited_for_its_sub_agents_can_be_resumed(tmp_path: Path) -> None:
    child = script(tmp_path, "child", HANG)
    here = configured(tmp_path, f"{call('general', child, background=True)}\n---\ntext: I wait\n")
    with start("go", home=here) as run:
        run.wait_for("I wait")
        wait_until(lambda: any(entry["entry_type"] == "leg_ended" for entry in here.log()))
        wait_until(lambda: statuses(here) == ["running"])
        run.kill()
    use_later(tmp_path)
    done = cru("--resume", home=here)
    assert (done.code, done.out) == (0, "I see\n") and len(told(here)) == 1
    again = cru("--resume", home=here)
    assert again.code == 1 and "there is no unfinished prompt" in again.err and len(told(here)) == 1


def test_a_prompt_with_a_key_goes_on_with_what_a_kill_cut_off(tmp_path: Path) -> None:
    child = script(tmp_path, "child", HANG)
    here = configured(tmp_path, f"{call('general', child, background=True)}\n---\ntext: I wait\n")
    with start("--idempotency-key", "k", "go", home=here) as run:
        wait_until(lambda: any(entry["entry_type"] == "leg_ended" for entry in here.log()))
        wait_until(lambda: statuses(here) == ["running"])
        run.kill()
    use_later(tmp_path)
    for _ in range(2):
        done = cru("--idempotency-key", "k", "go", home=here)
        assert (done.code, done.out) == (0, "I see\n") and len(told(here)) == 1


def test_a_second_kill_neither_loses_what_was_told_nor_tells_it_again(tmp_path: Path) -> None:
    child = script(tmp_path, "child", ANSWER)
    here = configured(tmp_path, f"{call('explore', child, background=True)}\n---\n{HANG}")
    kill_when(here, "completed")
    use_later(tmp_path, "delay: 600s\n")
    with start("and now?", home=here) as run:
        wait_until(lambda: told(here))
        run.kill()
    use_later(tmp_path)
    done = cru("--resume", home=here)
    assert (done.code, done.out) == (0, "I see\n")
    assert len(told(here)) == 1 and "the model is told" not in done.err


def test_a_kill_before_it_is_told_tells_it_later(tmp_path: Path) -> None:
    child = script(tmp_path, "child", ANSWER)
    here = configured(tmp_path, f"{call('explore', child, background=True)}\n---\n{HANG}")
    kill_when(here, "completed")
    use_later(tmp_path)
    plugin = here.cru / "plugins" / "slow.py"
    plugin.parent.mkdir(exist_ok=True)
    plugin.write_text("import pathlib, time\npathlib.Path('loading').touch()\ntime.sleep(600)\n")
    with start("and now?", home=here) as run:
        wait_until((here.project / "loading").exists)
        run.kill()
    plugin.unlink()
    assert told(here) == []
    assert cru("and now?", home=here).code == 0 and len(told(here)) == 1


def test_an_answer_that_the_model_read_before_the_kill_is_not_told_again(tmp_path: Path) -> None:
    child = script(tmp_path, "child", ANSWER)
    here = configured(
        tmp_path,
        f'by: order\n{call("explore", child, background=True)}\n---\ncall: task_output {{"id": "TASK", "wait": 5}}\n---\n{HANG}',
    )
    (here.cru / "plugins").mkdir(exist_ok=True)
    (here.cru / "plugins" / "name.lua").write_text(
        'cru.on("tool:before_call", function(ctx, event) if event.name == "task_output" then '
        "return { args = { id = cru.background.list()[1].id, wait = 5 } } end end)\n"
    )
    with start("go", home=here) as run:
        wait_until(lambda: any(entry["entry_type"] == "tool_call" and entry["to"] == "ls" for entry in here.log()))
        run.kill()
    use_later(tmp_path)
    assert len(told(here)) == 1  # by the call itself
    done = cru("and now?", home=here)
    assert done.code == 0 and len(told(here)) == 1 and "is done" not in done.err


def test_a_command_that_a_kill_ended_is_told(tmp_path: Path) -> None:
    command = {"command": "echo ready; sleep 600", "background": True}
    here = configured(tmp_path, f"call: bash {json.dumps(command)}\n---\n{HANG}")
    with start("go", home=here) as run:
        wait_until(lambda: b"ready" in b"".join(log.read_bytes() for log in here.context().glob("tasks/*/output.log")))
        run.kill()
    use_later(tmp_path)
    cru("go on", home=here)
    ended = r"(what it had started ran on, and was ended now: sleep \(\d+\)\n)?"  # unless that had ended it before
    assert re.search(rf"sleep 600\) was running when cru was killed, and is lost\]\n{ended}ready", told(here)[0])


def test_what_ended_with_the_session_is_told_to_the_model_of_the_next(tmp_path: Path) -> None:
    command = 'call: bash {"command": "sleep 600", "background": true}'
    here = configured(tmp_path, f"by: order\n{command}\n---\ntext: It runs.\n")
    assert cru("go", home=here).code == 0 and told(here) == []
    use_later(tmp_path)
    cru("and now?", home=here)
    assert "(command: sleep 600) was cancelled with the session]" in told(here)[0]


def test_a_chat_tells_what_a_killed_run_left(tmp_path: Path) -> None:
    child = script(tmp_path, "child", ANSWER)
    here = configured(tmp_path, f"{call('explore', child, background=True)}\n---\n{HANG}")
    kill_when(here, "completed")
    use_later(tmp_path)
    with pty(home=here) as terminal:
        terminal.expect("> ")
        terminal.line("hello")
        terminal.expect("the model is told")
        terminal.expect("I see")
        assert terminal.eof() == 0
    assert len(told(here)) == 1


def test_a_process_that_got_the_number_of_a_dead_run_is_not_taken_for_it(tmp_path: Path) -> None:
    here = configured(tmp_path, f"{call('explore', script(tmp_path, 'child', HANG), background=True)}\n---\n{HANG}")
    kill_when(here, "running")
    (file,) = here.context().glob("tasks/*/task.json")
    record = json.loads(file.read_text())
    assert record["owner_identity"]
    file.write_text(json.dumps({**record, "owner": os.getpid()}))
    (row,) = json.loads(cru("tasks", "--json", home=here).out)
    assert row["status"] == "lost"
    use_later(tmp_path)
    assert cru("go on", home=here).code == 0 and len(told(here)) == 1


def test_a_session_that_lives_is_left_to_tell_of_its_own_tasks(tmp_path: Path) -> None:
    child = script(tmp_path, "child", HANG)
    here = configured(tmp_path, f"{call('general', child, background=True)}\n---\ntext: I wait\n")
    with start("go", home=here) as run:
        wait_until(lambda: any(entry["entry_type"] == "leg_ended" for entry in here.log()))
        wait_until(lambda: statuses(here) == ["running"] and is_free(here.context()))
        use_later(tmp_path)
        done = cru("meanwhile", home=here)
        assert (done.code, done.err) == (0, "") and told(here) == [] and statuses(here) == ["running"]
        run.interrupt()
        run.wait()


@pytest.fixture
def worktrees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where worktrees are made."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield folder


def in_worktree(tmp_path: Path) -> HomeDir:
    """A home in a git project, whose sub-agent changes a file in a worktree and hangs."""
    write = 'call: write {"file_path": "a.txt", "content": "two\\n"}\n'
    child = script(tmp_path, "child", f"{write}---\n{HANG}")
    here = configured(tmp_path, f"{call('general', child, isolation='worktree')}\n---\ntext: never\n")
    here.project.rmdir()
    git_project(tmp_path)
    return here


def wait_for_change(here: HomeDir, folder: Path) -> None:
    wait_until(lambda: any(file.read_text() == "two\n" for file in folder.glob("cru-worktree-*/*/a.txt")))
    wait_until(lambda: calls_made(here) == 1)


def worktree_count(here: HomeDir) -> int:
    listed = subprocess.run(["git", "worktree", "list"], cwd=here.project, check=True, capture_output=True, text=True)
    return listed.stdout.count("\n")


@pytest.mark.sample(1)
@pytest.mark.parametrize("kills", [1, 2])
def test_the_changes_in_a_worktree_survive_a_kill_and_the_worktree_does_not(
    tmp_path: Path, worktrees: Path, kills: int
) -> None:
    here = in_worktree(tmp_path)
    env = {"TMPDIR": str(worktrees)}
    with start("go", home=here, env=env) as run:
        wait_for_change(here, worktrees)
        run.kill()
    assert worktree_count(here) == 2
    (file,) = here.context().glob("tasks/*/task.json")
    assert f"  in      {worktrees}/cru-worktree-" in cru("tasks", "show", file.parent.name, home=here).out
    use_later(tmp_path)
    if kills == 2:
        slow = tmp_path / "bin" / "git"
        slow.parent.mkdir()
        slow.write_text(
            f'#!/bin/sh\ncase "$*" in *"worktree remove"*) touch {tmp_path}/removing; sleep 600;; esac\nPATH=${{PATH#*:}} exec git "$@"\n'
        )
        slow.chmod(0o755)
        with start("--resume", home=here, env={**env, "PATH": f"{slow.parent}:{here.env['PATH']}"}) as run:
            wait_until((tmp_path / "removing").exists)
            run.kill()
        assert told(here) == []
    done = cru("--resume", home=here, env=env)
    assert (done.code, done.out) == (0, "I see\n")
    (text,) = told(here)
    assert "it worked in a git worktree of its own, which is gone" in text and "+two" in text
    assert worktree_count(here) == 1 and not list(worktrees.glob("cru-worktree-*"))
    (patch,) = here.context().glob("tasks/*/changes.patch")
    subprocess.run(["git", "apply", str(patch)], cwd=here.project, check=True)
    assert (here.project / "a.txt").read_text() == "two\n"


def assert_told_of_the_change(here: HomeDir) -> None:
    (text,) = told(here)
    (folder,) = (file.parent for file in here.context().glob("tasks/*/task.json"))
    assert text.startswith(
        f"[task {folder.name} (sub-agent general: do general) was cancelled with the turn that waited for it]\n"
    )
    assert "it worked in a git worktree of its own, which is gone" in text and "+two" in text
    assert f"git apply {folder}/changes.patch" in text and str(folder / "context.jsonl") in text
    shown = cru("tasks", "show", folder.name, home=here).out
    assert " (a git worktree, which is gone)\n" in shown
    assert f"changes  {folder}/changes.patch (`git apply` takes them over)\n" in shown


@pytest.mark.sample(1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("words", [("--resume",), ("and now?",)])
def test_an_interruption_tells_the_model_of_the_changes_in_a_worktree_as_a_kill_does(
    tmp_path: Path, worktrees: Path, number: signal.Signals, words: tuple[str, ...]
) -> None:
    here = in_worktree(tmp_path)
    env = {"TMPDIR": str(worktrees)}
    with start("go", home=here, env=env) as run:
        wait_for_change(here, worktrees)
        os.kill(run.pid, number)
        run.wait()
    assert worktree_count(here) == 1
    use_later(tmp_path)
    done = cru(*words, home=here, env=env)
    assert (done.code, done.out) == (0, "I see\n") and "the model is told" in done.err
    assert_told_of_the_change(here)
    assert cru("and?", home=here).err == "" and len(told(here)) == 1


def test_a_chat_goes_on_after_an_interruption_with_the_changes_in_a_worktree(tmp_path: Path, worktrees: Path) -> None:
    here = in_worktree(tmp_path)
    script(tmp_path, "main", (tmp_path / "main.txt").read_text().replace("never", "I see"))
    with pty(home=here, env={"TMPDIR": str(worktrees)}) as terminal:
        terminal.expect("> ")
        terminal.line("go")
        wait_for_change(here, worktrees)
        terminal.send("\x03")
        terminal.expect("interrupted")
        terminal.line("and now?")
        terminal.expect("I see")
        assert terminal.eof() == 0
    assert_told_of_the_change(here)


def test_a_record_that_names_a_folder_of_somebody_elses_removes_nothing(tmp_path: Path, worktrees: Path) -> None:
    here = in_worktree(tmp_path)
    with start("go", home=here, env={"TMPDIR": str(worktrees)}) as run:
        wait_for_change(here, worktrees)
        run.kill()
    precious = tmp_path / "precious" / "work"
    precious.mkdir(parents=True)
    (file,) = here.context().glob("tasks/*/task.json")
    record = json.loads(file.read_text())
    record["worktree"]["path"] = str(precious)
    file.write_text(json.dumps(record))
    use_later(tmp_path)
    assert cru("--resume", home=here).code == 0
    assert precious.is_dir() and "was left alone" in told(here)[0]
