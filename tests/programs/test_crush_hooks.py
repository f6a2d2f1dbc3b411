"""Hooks as Crush's documentation shows them run unmodified: a project's crush.json names them, the real command runs a real turn.

None of the scripts may be executed by their mode, as in Crush.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from msgspec import json
from tests.faces.hooks_home import trust
from tests.kit import Call, Done, HomeDir, Received, Reply, cru, home, server

FOLDER = Path(__file__).parent / "crush_hooks"


@pytest.fixture
def here(tmp_path: Path) -> HomeDir:
    """A project with the hooks, some files, and nothing accepted yet."""
    made = home(tmp_path)
    shutil.copytree(FOLDER, made.project, dirs_exist_ok=True)
    for script in (made.project / "hooks").iterdir():
        script.chmod(0o644)
    files = {"tickets.txt": "one\nthe door squeaks\n", "CONTRIBUTING.md": "", "door.py": "", "tests/test_door.py": ""}
    for name, text in files.items():
        (made.project / name).parent.mkdir(exist_ok=True)
        (made.project / name).write_text(text)
    return made


def turn(
    here: HomeDir, *calls: Call, prompt: str = "go on", mode: str = "ask", code: int = 0
) -> tuple[Done, list[Received]]:
    with server([Reply(calls=calls), Reply("fine")] if calls else [Reply("fine")]) as model:
        here.configure(f'mode = "{mode}"\n', model.url)
        done = cru("--hooks=all", prompt, home=here)
    assert done.code == code and "Traceback" not in done.err and "failed" not in done.err, done
    return done, model.requests


def results(requests: list[Received]) -> list[str]:
    return [m["content"] for m in requests[-1].body["messages"] if m["role"] == "tool"]


def bash(command: str) -> Call:
    return Call("bash", {"command": command})


@pytest.mark.slow
def test_a_matcher_and_exit_2_refuse_a_call(here: HomeDir) -> None:
    _, requests = turn(here, bash("touch a; git push --force origin"), bash("touch b"), mode="trust")
    refused, other = results(requests)
    assert refused.startswith("Blocked by ") and "use --force-with-lease" in refused
    assert not (here.project / "a").exists() and (here.project / "b").exists() and "Blocked" not in other


@pytest.mark.slow
def test_jq_rewrites_the_call_allows_it_and_adds_context(here: HomeDir) -> None:
    _, requests = turn(here, bash("pip install requests"), bash("touch b"))
    rewritten, asked = results(requests)
    assert rewritten == "pip install --no-index requests\nPackages come from ./wheels only."
    assert asked.startswith("Not allowed by policy") and not (here.project / "b").exists()
    [call] = [e for e in here.log() if e["entry_type"] == "tool_call" and "pip" in str(e)]
    assert '"pip install requests"' in str(call["content"])  # the log has what the model asked for


def test_exit_49_ends_the_turn(here: HomeDir) -> None:
    done, requests = turn(here, bash("echo drop table users | db"), bash("touch b"), mode="trust", code=3)
    assert len(requests) == 1 and not (here.project / "b").exists()
    assert "a person decides about databases" in done.err


@pytest.mark.sample(1)
@pytest.mark.parametrize("tool", ["write", "edit"])
def test_claudes_shape_denies(here: HomeDir, tool: str) -> None:
    texts = {"content": "x"} if tool == "write" else {"old_string": "a", "new_string": "b"}
    _, requests = turn(here, Call(tool, {"file_path": ".env", **texts}), mode="trust")
    [result] = results(requests)
    assert f"{tool} must not touch secrets" in result and "Changed before this" not in result
    assert not (here.project / ".env").exists()


def test_reads_are_allowed_without_a_question_and_files_are_named(here: HomeDir) -> None:
    """The context file outside of the project is left out, and so is one that is not there."""
    done, requests = turn(here, Call("read", {"file_path": "door.py"}), Call("read", {"file_path": "tickets.txt"}))
    first, second = results(requests)
    assert first.endswith("## Referenced files\n- tests/test_door.py\n- CONTRIBUTING.md")
    assert second.endswith("## Referenced files\n- CONTRIBUTING.md") and "one" in second
    assert "elsewhere.md lies outside of the project" in done.err


def test_the_status_of_git_follows_an_edit(here: HomeDir) -> None:
    subprocess.run(["git", "init", "-q", "."], cwd=here.project, check=True)
    _, requests = turn(here, Call("write", {"file_path": "new.txt", "content": "x"}), mode="trust")
    [result] = results(requests)
    assert "Changed before this: " in result and "?? door.py" in result and "?? new.txt" not in result


def test_a_prompt_is_rewritten_and_both_are_kept(here: HomeDir) -> None:
    done, [request] = turn(here, prompt="please look at #2 today")
    assert request.body["messages"][-1]["content"] == "please look at “the door squeaks” today"
    assert "tickets: rewrote the prompt" in done.err
    said = [e["content"] for e in here.log() if e["entry_type"] in ("message", "message_resolved")]
    assert said[:2] == ["please look at #2 today", "please look at “the door squeaks” today"]


def test_a_prompt_is_refused(here: HomeDir) -> None:
    done, requests = turn(here, prompt="log in with password=hunter22", code=3)
    assert requests == [] and "passwords stay here" in done.err


def test_each_waits_until_a_person_has_accepted_it(here: HomeDir) -> None:
    with server([Reply(calls=[bash("touch a; git push -f")]), Reply("fine")]) as model:
        here.configure('mode = "trust"\n', model.url)
        done = cru("go", home=here)
        assert "8 project hooks await trust" in done.err and (here.project / "a").exists()
    (here.project / "a").unlink()
    listed = json.decode(cru("hooks", "list", "--json", home=here).out)
    [guard] = [row["id"] for row in listed if row["name"] == "no force"]
    trust(here, guard)
    with server([Reply(calls=[bash("touch a; git push -f")]), Reply("fine")]) as model:
        here.configure('mode = "trust"\n', model.url)
        done = cru("go", home=here)
    assert "7 project hooks await trust" in done.err and not (here.project / "a").exists()


def test_nothing_in_the_file_is_odd(here: HomeDir) -> None:
    run = cru("hooks", "check", home=here)
    assert run.code == 1 and "0 broken, 0 odd" in run.out, run
