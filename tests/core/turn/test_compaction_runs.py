"""Compaction as a user meets it: the real command, a real server, kill -9 and Ctrl-C in the middle, two processes at once."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.kit import Call, HomeDir, Received, Reply, Server, Status, cru, server, start
from tests.kit.steps import Hang, Step
from tests.programs.cru_killed import MOMENTS

KILLED = Path(__file__).parents[2] / "programs" / "cru_killed.py"
LONG = "x" * 2000
CONFIG = """context_window_limit = 5000
auto_compact = true
auto_compact_threshold = 60
warn_threshold_percent = 40
"""
CHOICE, SUMMARY, CHAT = "choice", "summary", "chat"


def kind(request: Received) -> str:
    system = str(request.body["messages"][0]["content"])
    return CHOICE if "Choose which" in system else SUMMARY if system.startswith("Summarise") else CHAT


def rule(**special: Callable[[Received], Step]) -> Callable[[Received], Step]:
    """Each prompt first looks at a file, then answers with its own words; `special` by kind of request."""

    def answer(request: Received) -> Step:
        what = kind(request)
        if what in special:
            return special[what](request)
        if what == CHOICE:
            return Reply('Take these: ["1", "2", "3", "4"]')
        if what == SUMMARY:
            return Reply("they talked")
        last = request.body["messages"][-1]
        if last["role"] == "user" and "look" in last["content"]:
            return Reply(calls=[Call("ls", {}, id=f"call_{len(request.body['messages'])}")])
        return Reply(f"answer to {last['content'][:10]} {LONG}")

    return answer


def filled(home: HomeDir, model: Server) -> None:
    """A conversation that the next prompt makes too long."""
    home.configure("", model.url)
    for number in range(4):
        done = cru("-t", f"{number} look {LONG}", home=home)
        assert done.code == 0, done.err
    home.configure(CONFIG, model.url)


def transcript(home: HomeDir) -> str:
    path = home.context() / "transcript.md"
    return path.read_text() if path.exists() else ""


def check(home: HomeDir, prompts: list[str]) -> None:
    """Every prompt is there once and in order, every call has its result, and nothing is wrong."""
    shown = cru("-g", "0", home=home)
    assert shown.code == 0 and shown.err == ""
    lines = [line for line in shown.out.splitlines() if line.startswith("[USER]")]
    assert [line.split()[1] for line in lines] == prompts
    calls = cru("-g", "0", "-v", home=home).out
    assert calls.count("[TOOL RESULT: ls]") == len(prompts)
    assert not [
        name for name in home.context().iterdir() if name.name.endswith(".tmp") and not name.name.startswith(".")
    ]


def test_the_prompt_is_answered_and_everything_is_still_there(home: HomeDir) -> None:
    with server(rule()) as model:
        filled(home, model)
        before = len(model.requests)
        done = cru("-t", f"4 look {LONG}", home=home)
        assert (done.code, done.out[:9]) == (0, "answer to"), done.err
        assert done.err.startswith("[compacted: ")
        assert [kind(r) for r in model.requests[before:]].count(SUMMARY) >= 1
        again = cru("-t", f"5 look {LONG}", home=home)
        assert again.code == 0 and again.out.startswith("answer to")
    check(home, ["0", "1", "2", "3", "4", "5"])
    anchors = [e for e in home.log() if e["entry_type"] == "anchor"]
    assert anchors and all(a["metadata"]["keep"] for a in anchors)
    for turn, number in (("1", "1"), ("4", "2"), ("5", "1"), ("5", "3"), ("6", "1")):
        assert "(as sent)" in cru("trace", "--turn", turn, "--request", number, home=home).out, turn


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before the choice", "before the summary", *MOMENTS])
def test_a_kill_at_any_moment_of_a_compaction_loses_nothing(home: HomeDir, moment: str) -> None:
    hangs = {"before the choice": CHOICE, "before the summary": SUMMARY}
    killed = [False]

    def once(request: Received) -> Step:
        return rule()(request) if killed[0] else Hang()

    special = {hangs[moment]: once} if moment in hangs else {}
    with server(rule(**special)) as model:
        filled(home, model)
        words = ("-t", f"4 look {LONG}")
        if special:
            before = len(model.requests)
            with start(*words, home=home) as run:
                model.wait(before + 1 + (moment == "before the summary"))
                run.kill()
                assert run.wait().code == -signal.SIGKILL
        else:
            dead = cru(moment, *words, home=home, script=KILLED)
            assert dead.code == -signal.SIGKILL, dead
        killed[0] = True
        resumed = cru("--resume", "-t", home=home)
        assert resumed.code == 0 and resumed.out.startswith("answer to"), resumed.err
        assert cru("-t", f"5 look {LONG}", home=home).code == 0
    check(home, ["0", "1", "2", "3", "4", "5"])
    said = [line for line in transcript(home).splitlines() if line.startswith("[USER]: ")]
    assert len(set(said)) == len(said)  # for people: nothing twice


def test_a_damaged_line_of_the_archive_is_told(home: HomeDir) -> None:
    with server(rule()) as model:
        filled(home, model)
        assert cru("-a", "-x", home=home).code == 0
    archive = home.context() / "transcript_archive.jsonl"
    first, *lines = archive.read_bytes().splitlines(keepends=True)
    archive.write_bytes(first[:40] + b" damaged\n" + b"".join(lines))
    shown = cru("-g", "0", home=home)
    assert "transcript_archive.jsonl:1: not an entry, skipped" in shown.err and "[USER]: 1 look" in shown.out


@pytest.mark.slow
@pytest.mark.parametrize("what", [CHOICE, SUMMARY])
def test_ctrl_c_in_a_compaction_changes_nothing(home: HomeDir, what: str) -> None:
    with server(rule(**{what: lambda request: Hang()})) as model:
        filled(home, model)
        before = len(model.requests)
        with start("-t", f"4 look {LONG}", home=home) as run:
            model.wait(before + 1 + (what == SUMMARY))
            run.interrupt()
            assert run.wait().code == 130
        assert not [e for e in home.log() if e["entry_type"] == "anchor"]
        assert home.log()[-1]["metadata"]["cause"] == "interrupted"


def test_a_provider_that_fails_only_here_does_not_end_the_leg(home: HomeDir) -> None:
    with server(rule(**{w: lambda r: Status(400) for w in (CHOICE, SUMMARY)})) as model:
        filled(home, model)
        done = cru("-t", "-v", f"4 look {LONG}", home=home)
    assert done.code == 0 and done.out.startswith("answer to"), done.err
    assert "compaction takes the oldest messages: " in done.err and done.err.count("not compacted: ") == 1


@pytest.mark.parametrize("where", ["config.toml", "models.toml", "local.toml"])
def test_the_window_is_that_of_the_model_in_use_wherever_it_is_set(home: HomeDir, where: str) -> None:
    with server(rule()) as model:
        home.configure("warn_threshold_percent = 50\n", model.url)
        if where == "models.toml":
            (home.cru / where).write_text("[models.mock]\ncontext_window = 1000\n")
            home.configure("warn_threshold_percent = 50\ncontext_window_limit = 900000\n", model.url)
        elif where == "local.toml":
            home.context().mkdir(parents=True)
            (home.context() / where).write_text("context_window_limit = 1000\n")
        else:
            home.configure("warn_threshold_percent = 50\n[models.mock]\ncontext_window = 1000\n", model.url)
        quiet = cru("-t", f"hi {LONG}", home=home)
        told = cru("-v", "-t", f"hi {LONG}", home=home)
    assert quiet.err == ""
    assert told.err.count(" of 1000 tokens)") == 2


@pytest.mark.slow
def test_two_processes_that_archive_at_once_lose_nothing(home: HomeDir) -> None:
    with server(rule()) as model:
        filled(home, model)
        hook = home.cru / "plugins" / "slow.py"
        hook.parent.mkdir()
        hook.write_text(
            "import time\nfrom cru import on\n\n@on('context:clearing')\ndef wait(ctx, event):\n"
            "    print('waits', flush=True)\n    time.sleep(1)\n"
        )
        with start("-a", "-x", home=home) as first:
            first.wait_for("waits")
            second = cru("-a", "-x", home=home)
            assert first.wait().code == 0
    assert second.code == 4 and "is in use by process" in second.err
    assert len([e for e in home.log() if e["entry_type"] == "anchor"]) == 1
    check(home, ["0", "1", "2", "3"])


@pytest.mark.slow
def test_an_archive_of_nothing_still_clears_the_summary(home: HomeDir) -> None:
    with server(rule()) as model:
        filled(home, model)
        assert cru("-z", home=home).code == 0
        assert cru("-a", "-x", home=home).code == 0
        assert cru("-a", "-x", home=home).code == 0
        assert cru("-t", "hello", home=home).code == 0
    assert "they talked" not in str(model.requests[-1].body)


@pytest.mark.sample(1)
@pytest.mark.parametrize("answer", [Reply("  "), Status(400)])
def test_a_full_compaction_without_a_summary_changes_nothing(home: HomeDir, answer: Step) -> None:
    with server(rule(summary=lambda r: answer)) as model:
        filled(home, model)
        before = home.log()
        done = cru("-z", home=home)
    assert done.code != 0 and "Traceback" not in done.err and done.err.count("\n") <= 3
    assert home.log() == before
