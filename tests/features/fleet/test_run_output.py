"""What a worker reads of a run, and what it makes of its end."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from cru.features.fleet import run_task
from cru.features.fleet.records import BatchItem, QueuedTask
from cru.features.fleet.run_task import RunEnd, RunOutput, RunSettings, TaskRun, environment_for_runs, request_of

RESULT = b'{"v":1,"type":"result","code":0,"resume":"","payload":{"cause":"done","response":"fine"}}\n'
WARNING = b'{"v":1,"type":"notice","payload":{"level":"warning","text":"careful"}}\n'
TASK = QueuedTask("b", "x", "b/x", BatchItem("hi", id="x", context="c", cwd="/"), 0, 5)


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_only_the_lines_that_matter_are_kept(size: int) -> None:
    output = RunOutput()
    data = b'{"v":1,"type":"message:before_send","payload":"' + b"x" * 9000 + b'"}\n\n' + WARNING + RESULT
    for at in range(0, len(data), size):
        output.feed(data[at : at + size])
        assert sum(map(len, output._line)) < 200 + size
    assert output.notices == ["careful"]
    assert output.result is not None and output.result["payload"]["response"] == "fine"


def judged(result: bytes, status: int, *, ended: bool = False, timed_out: bool = False, errors: str = "") -> str:
    run = TaskRun(RunSettings((), Path("/nowhere"), {}), TASK)
    run._is_ended = ended
    output = RunOutput()
    output.feed(result)
    end = run._judge(output, errors, status, timed_out)
    if end.result is not None:
        return f"{end.result.status.value}: {end.result.error}".removesuffix(": ")
    return end.why or ("held" if end.is_held else "handed back")


def line(cause: str, code: int, **more: object) -> bytes:
    return (
        msgspec.json.encode({"v": 1, "type": "result", "code": code, "resume": "", "payload": {"cause": cause, **more}})
        + b"\n"
    )


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (judged(RESULT, 0), "done"),
        (judged(line("halted", 3, reason="no"), 3), "denied: no"),
        (judged(line("halted", 3, reason="no", outcome={"kind": "gave_up"}), 3), "denied: gave up: no"),
        (judged(line("halted", 3, reason="no", outcome={"kind": "failed"}), 3), "denied: no"),
        (judged(line("halted", 0, reason="all", outcome={"kind": "done"}), 0), "done"),
        (judged(line("error", 1, error="broken"), 1), "failed: broken"),
        (judged(line("error", 5, error="no model"), 5), "failed: no model"),
        (judged(line("error", 4, error="held"), 4), "held"),
        (judged(line("interrupted", 143), 143, ended=True), "handed back"),
        (judged(line("interrupted", 143), 143), "a signal ended it"),
        (judged(line("interrupted", 143), 143, timed_out=True), "timed-out: it took longer than 0 s"),
        (judged(RESULT, 0, timed_out=True), "done"),
        (judged(RESULT, 0, ended=True), "done"),
        (judged(b"", -9), "it was ended by SIGKILL"),
        (judged(b"", -9, ended=True), "handed back"),
        (judged(b"", -11, errors="a\nFatal Python error"), "it was ended by SIGSEGV (Fatal Python error)"),
        (judged(b"", 0), "it ended without a result"),
        (judged(b"", 2, errors="cru: no"), "failed: cru: no"),
    ],
)
def test_what_the_end_of_a_run_means(end: str, expected: str) -> None:
    assert end == expected


def test_the_request_has_all_that_the_item_says() -> None:
    item = BatchItem(
        "hi", id="x", context="c", model="m", mode="plan", attach=("/a",), set={"api.temperature": 0.5}, fuel=3,
        on_interrupted="fail", strict_hooks=True,
    )  # fmt: skip
    request = msgspec.json.decode(request_of(QueuedTask("b", "x", "b/x", item, 0, 5), Path("/home/.cru")))
    assert request == {
        "command": {"send_prompt": {"prompt": "hi"}},
        "context": {"transient": {"name": "c"}},
        "home": "/home/.cru",
        "flags": {"idempotency_key": "b/x", "model": "m", "mode": "plan", "attach": ["/a"], "strict_hooks": True},
        "overrides": {"api.temperature": 0.5, "fuel": 3, "on_interrupted": "fail"},
    }


def test_the_way_into_the_queue_is_not_handed_on() -> None:
    env = environment_for_runs({"PATH": "/bin", "CRU_DATABASE_URL": "postgresql://user:secret@host"})
    assert env == {"PATH": "/bin"}


def test_a_run_that_hears_no_signal_is_killed_and_can_go_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(run_task, "DEAF_SECONDS", 0.2)
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); open('deaf', 'w'); time.sleep(600)"
    run = TaskRun(
        RunSettings((sys.executable, "-c", deaf), tmp_path, {}), replace(TASK, item=BatchItem("hi", cwd=str(tmp_path)))
    )

    async def play() -> RunEnd:
        job = asyncio.create_task(run.run())
        while not (tmp_path / "deaf").exists():
            await asyncio.sleep(0.01)
        run.end()
        return await asyncio.wait_for(job, 30)

    end = asyncio.run(play())
    assert end.is_ended and end.result is None and not end.why
