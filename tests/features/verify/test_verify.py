"""`[verify]`: a turn that changed files ends as done only if the command passes, with the real command."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.kit import Call, HomeDir, Received, Reply, Status, cru, server, start, trust_project
from tests.kit.waiting import wait_until

from cru.features.verify import VerifySettings
from cru.features.verify.session import SessionVerification

CONFIG = 'mode = "trust"\n[verify]\ncommand = "./check"\nattempts = 2\n'
GOOD, BAD = {"file_path": "value", "content": "good"}, {"file_path": "value", "content": "bad"}
WRITE_GOOD, WRITE_BAD = Reply(calls=[Call("write", GOOD)]), Reply(calls=[Call("write", BAD)])
LOOK = Reply(calls=[Call("bash", {"command": "ls"})])


@pytest.fixture
def here(home: HomeDir) -> HomeDir:
    check = home.project / "check"
    check.write_text(
        '#!/bin/sh\necho run >> "$0.log"\ngrep -q good value || { echo "value is $(cat value)"; exit 3; }\n'
    )
    check.chmod(0o755)
    return home


def runs(here: HomeDir) -> int:
    log = here.project / "check.log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def play(
    here: HomeDir, *replies: Reply | Status, config: str = CONFIG, argv: tuple[str, ...] = ("--json", "go")
) -> tuple[dict[str, Any], list[Received]]:
    """The result line of a run, and its requests."""
    with server([*replies]) as model:
        here.configure(config, url=model.url)
        done = cru(*argv, home=here)
    assert "Traceback" not in done.err, done
    result: dict[str, Any] = json.loads(done.out.splitlines()[-1])
    return result, model.requests


def last_text(request: Received) -> str:
    return str(request.body["messages"][-1]["content"])


def test_a_turn_that_changed_a_file_ends_as_done_when_the_command_passes(here: HomeDir) -> None:
    result, _ = play(here, WRITE_GOOD, Reply("done"))
    assert (result["code"], runs(here)) == (0, 1)
    assert result["payload"]["outcome"] == {"kind": "done", "reason": "", "open": [], "evidence": ["`./check` passed"]}


def test_the_model_gets_the_output_and_may_try_again(here: HomeDir) -> None:
    result, requests = play(here, WRITE_BAD, Reply("done"), WRITE_GOOD, Reply("now it is"))
    assert (result["code"], runs(here), len(requests)) == (0, 2, 4)
    assert "`./check` failed (exit status 3):\nvalue is bad" in last_text(requests[2])


def test_a_model_that_changes_nothing_after_the_failure_has_given_up(here: HomeDir) -> None:
    result, requests = play(here, WRITE_BAD, Reply("done"), Reply("it is done, believe me"))
    assert (result["code"], runs(here), len(requests)) == (3, 1, 3)
    assert result["payload"]["outcome"] == {
        "kind": "gave_up", "reason": "verify: `./check` failed, and nothing was changed after that", "open": ["make `./check` pass"],
        "evidence": [],
    }  # fmt: skip


def test_what_did_not_pass_is_verified_at_the_end_of_the_next_run_too(here: HomeDir) -> None:
    result, _ = play(here, WRITE_BAD, Reply("done"), Reply("believe me"))
    assert (result["code"], runs(here)) == (3, 1)
    result, requests = play(here, Reply("it works"), Reply("it does"))
    assert (result["code"], runs(here), len(requests)) == (3, 2, 2)
    result, _ = play(here, WRITE_GOOD, Reply("done"))
    assert (result["code"], runs(here)) == (0, 3)
    result, _ = play(here, Reply("it works"))
    assert (result["code"], runs(here)) == (0, 3)


def test_what_an_error_left_is_verified_later(here: HomeDir) -> None:
    result, _ = play(here, WRITE_BAD, Status(400))
    assert (result["code"], runs(here)) == (1, 0)
    result, _ = play(here, Reply("it works"), Reply("it does"))
    assert (result["code"], runs(here)) == (3, 1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_an_interrupted_verification_is_no_end(here: HomeDir, number: int) -> None:
    good = (here.project / "check").read_text()
    (here.project / "check").write_text("#!/bin/sh\ntouch began\nexec sleep 60\n")
    with server([WRITE_BAD, Reply("done"), Reply("so")]) as model:
        here.configure(CONFIG, url=model.url)
        with start("--json", "--idempotency-key", "k", "go", home=here) as running:
            wait_until((here.project / "began").exists)
            running.signal(number)
            done = running.wait()
        result = json.loads(done.out.splitlines()[-1])
        assert (done.code, result["payload"]["outcome"]["kind"]) == (128 + number, "interrupted")
        (here.project / "check").write_text(good)
        again = cru("--idempotency-key", "k", "go", home=here)
    assert again.code == 3 and runs(here) == 1, again


def test_attempts_are_bounded(here: HomeDir) -> None:
    tries = [Reply(calls=[Call("write", {"file_path": "value", "content": f"bad {n}"})]) for n in range(3)]
    result, requests = play(here, *(reply for each in tries for reply in (each, Reply("done"))))
    assert (result["code"], runs(here), len(requests)) == (3, 3, 6)
    assert result["payload"]["outcome"]["reason"] == "verify: `./check` failed after 2 attempts to fix it"


@pytest.mark.parametrize("replies", [(Reply("hello"),), (LOOK, Reply("I looked"))], ids=["words", "looks"])
def test_a_turn_that_changed_nothing_verifies_nothing(here: HomeDir, replies: tuple[Reply, ...]) -> None:
    result, _ = play(here, *replies)
    assert (result["code"], runs(here)) == (0, 0)


def test_what_passed_is_not_run_again_before_something_changes(here: HomeDir) -> None:
    (here.cru / "plugins").mkdir(parents=True)
    (here.cru / "plugins" / "once.lua").write_text(
        'local said = false\ncru.on("turn:ending", function()\n  if not said then said = true return { inject = "look again" } end\nend)\n'
    )
    result, requests = play(here, WRITE_GOOD, Reply("done"), LOOK, Reply("still done"))
    assert (result["code"], runs(here), len(requests)) == (0, 1, 4)


def test_a_file_that_is_put_back_counts_as_changed(here: HomeDir) -> None:
    (here.project / "value").write_text("bad")
    result, _ = play(here, WRITE_GOOD, Reply("done"))
    assert (result["code"], runs(here)) == (0, 1)
    result, _ = play(here, WRITE_GOOD, WRITE_BAD, Reply("done"), Reply("believe me"))
    assert (result["code"], runs(here)) == (3, 2)


def test_what_a_command_changes_counts_in_and_outside_of_git(here: HomeDir) -> None:
    for number, is_git in enumerate((False, True), 1):
        change = Reply(calls=[Call("bash", {"command": f"echo bad {number} > value"})])
        if is_git:
            subprocess.run(["git", "init", "-q"], cwd=here.project, env=here.env, check=True)
        result, _ = play(here, change, Reply("done"), Reply("believe me"))
        assert (result["payload"]["outcome"]["kind"], runs(here)) == ("gave_up", number)


def test_a_command_that_hangs_or_talks_without_end_is_ended(here: HomeDir) -> None:
    (here.project / "check").write_text("#!/bin/sh\nhead -c 100000000 /dev/zero | tr '\\0' x\nexec sleep 600\n")
    result, requests = play(
        here, WRITE_GOOD, Reply("done"), Reply("so"), config=CONFIG.replace("attempts", "timeout = 0.5\nattempts")
    )
    assert (
        result["code"] == 3 and "ran longer than 0.5 s" in last_text(requests[2]) and len(last_text(requests[2])) < 6000
    )


def test_the_time_of_the_command_is_not_that_of_a_handler() -> None:
    limits: dict[str, float] = {}

    class Registry:
        def on(self, event: str, _call: object, **fields: Any) -> None:
            limits[event] = fields.get("limit", 0)

    store = SimpleNamespace(read_text=lambda _name: "")
    parts: Any = SimpleNamespace(bus=SimpleNamespace(registry=Registry()), store=store)
    SessionVerification(VerifySettings("./check", timeout=700)).join(parts)
    assert limits["turn:ending"] == 760


def test_where_undo_cannot_record_each_call_counts(here: HomeDir) -> None:
    (here.cru).mkdir(exist_ok=True)
    (here.cru / "revisions").write_text("no folder")
    result, _ = play(here, WRITE_BAD, Reply("done"), Reply("believe me"))
    assert (result["code"], runs(here)) == (3, 1)


def test_a_killed_verification_is_made_up_for(here: HomeDir) -> None:
    slow = here.project / "check"
    good = slow.read_text()
    slow.write_text("#!/bin/sh\ntouch began\nexec sleep 60\n")
    with server([WRITE_BAD, Reply("done"), Reply("so")]) as model:
        here.configure(CONFIG, url=model.url)
        with start("go", home=here) as running:
            wait_until((here.project / "began").exists)
            running.kill()
            running.wait()
        slow.write_text(good)
        done = cru("--resume", home=here)
    assert done.code == 3 and "verify: `./check` failed" in done.err and runs(here) == 1, done


def test_a_projects_command_waits_for_trust(here: HomeDir) -> None:
    folder = here.project / ".cru"
    folder.mkdir()
    (folder / "config.toml").write_text('[verify]\ncommand = "./check"\n')
    result, _ = play(here, WRITE_BAD, Reply("done"), config='mode = "trust"\n')
    assert (result["code"], runs(here)) == (0, 0)
    assert trust_project(here).code == 0
    (here.project / "value").unlink()
    result, _ = play(here, WRITE_BAD, Reply("done"), Reply("so"), config='mode = "trust"\n')
    assert (result["code"], runs(here)) == (3, 1)


def test_ctrl_c_ends_the_command_and_the_run(here: HomeDir, tmp_path: Path) -> None:
    (here.project / "check").write_text("#!/bin/sh\ntouch began\nsleep 60\ntouch ended\n")
    with server([WRITE_BAD, Reply("done")]) as model:
        here.configure(CONFIG, url=model.url)
        with start("go", home=here) as running:
            wait_until((here.project / "began").exists)
            running.signal(signal.SIGINT)
            assert running.wait().code == 130
    assert not (here.project / "ended").exists()
