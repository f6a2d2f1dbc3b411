"""Commands in the background that do what they can to be in the way, with the real command: floods, deaf ones, many, odd bytes, no disk,
and runs that end at any moment."""

from __future__ import annotations

import json
import os
import random
import re
import signal
from pathlib import Path

import pytest
from tests.kit import Call, HomeDir, Received, Reply, cru, kill_at, pty, server, start, wait_until
from tests.kit.processes import is_running
from tests.kit.sandbox import needs_mounts

LIMIT = 200_000
SETTINGS = f"[tasks]\noutput_limit = {LIMIT}\nmax_concurrent = 200\nmax_tasks = 300\n"


def background(command: str, **more: object) -> Call:
    return Call("bash", {"command": command, "background": True, **more})


def on_disk(home: HomeDir) -> int:
    """Bytes of all outputs. A part may be thrown away while they are counted."""
    size = 0
    for file in home.context().glob("tasks/*/output*"):
        try:
            size += file.stat().st_size
        except FileNotFoundError:
            pass
    return size


def resident(pid: int) -> int:
    """Bytes of memory, 0 if it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return 0
    match = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(match[1]) * 1024 if match else 0


def flood(home: HomeDir, size: int) -> None:
    """A command that prints that many bytes: little is kept on disk and in memory, and its last lines can be read at any time."""
    command = f"yes {'x' * 99} | head -c {size}; echo flooded; touch flooded; sleep 60"
    replies = [
        Reply(calls=[background(command), Call("bash", {"command": "until [ -e flooded ]; do sleep 0.01; done"})]),
        Reply("done"),
    ]
    with server(replies) as model:
        home.configure(SETTINGS, model.url)
        with start("-t", "go", home=home) as run:
            wait_until(lambda: on_disk(home) > LIMIT // 2)
            before, largest, shown = resident(run.pid), 0, 0
            while run.alive and not (home.project / "flooded").exists():
                largest = max(largest, resident(run.pid))
                assert on_disk(home) <= LIMIT + LIMIT // 4
                (row,) = json.loads(cru("tasks", "--json", home=home).out)
                shown += "x" * 99 in cru("tasks", "show", row["id"], home=home).out
            done = run.wait()
    assert done.code == 0 and shown > 0 and 0 < largest < before + (8 << 20), (before, largest)
    (folder,) = home.context().glob("tasks/*/task.json")
    last = max(folder.parent.glob("output.*.log"), key=lambda file: int(file.name.split(".")[1]))
    assert last.read_text().endswith("flooded\n")


@pytest.mark.slow
def test_a_flood_of_output_is_bounded_and_can_be_read(home: HomeDir) -> None:
    flood(home, 100_000_000)


@pytest.mark.long
def test_a_gigabyte_of_output_is_bounded_and_can_be_read(home: HomeDir) -> None:
    flood(home, 1_000_000_000)


@pytest.mark.slow
def test_two_hundred_commands_at_once_run_and_end(home: HomeDir) -> None:
    calls = [background(f"echo $$ >pid{number}; exec sleep 60") for number in range(200)]
    waits = Call(
        "bash",
        {
            "command": "until [ $(ls pid* | wc -l) = 200 ] && ! find . -name 'pid*' -empty | grep -q .; do sleep 0.05; done"
        },
    )
    with server([Reply(calls=[*calls, waits]), Reply("done")]) as model:
        home.configure(SETTINGS, model.url)
        done = cru("-t", "go", home=home)
    assert (done.code, done.out) == (0, "done\n")
    assert done.err.count("ended with the session: echo $$") == 200 and "does not end" not in done.err
    pids = [int(file.read_text()) for file in home.project.glob("pid*")]
    assert len(pids) == 200 and not any(map(is_running, pids))


DEAF = "trap '' TERM HUP INT QUIT; echo $$ >pid; while :; do sleep 0.05; done"
SILENT = "exec >/dev/null 2>&1 <&-; echo $$ >pid; exec sleep 60"
LOST = "echo $$ >pid0; env -i setsid sh -c 'sleep 60 & echo $! >pid'; exec sleep 60"
ODD = {"deaf to signals": DEAF, "with closed streams": SILENT, "with a lost daemon": LOST}


def number_in(home: HomeDir, name: str = "pid") -> int:
    """A process id, 0: it is not written yet."""
    file = home.project / name
    return int(file.read_text() or 0) if file.exists() else 0


@pytest.mark.slow
@pytest.mark.real_start
@pytest.mark.parametrize("command", ODD.values(), ids=ODD)
@pytest.mark.parametrize("way", ["end of input", "hangup", "Ctrl-C", "SIGTERM", "SIGKILL"])
def test_however_a_chat_ends_its_commands_end(home: HomeDir, way: str, command: str) -> None:
    with server([Reply(calls=[background(command)]), Reply("done")]) as model:
        home.configure(url=model.url)
        with pty("-t", home=home) as terminal:
            terminal.expect("> ")
            terminal.line("go")
            terminal.expect("done")
            terminal.expect("> ")
            wait_until(lambda: number_in(home) > 0)
            if way == "hangup":
                terminal.hang_up()
            elif way.startswith("SIG"):
                os.kill(terminal.pid, getattr(signal, way))
                terminal.wait()
            else:
                terminal.send("\x03" if way == "Ctrl-C" else "")
                terminal.eof()
        wait_until(lambda: not is_running(number_in(home)))


@pytest.mark.slow
@pytest.mark.real_start
def test_kill_9_at_any_moment_leaves_no_orphan(home: HomeDir) -> None:
    """Of commands in the background and in the foreground, that stay, that leave their session, and that lose all they have."""
    rng = random.Random()
    seed = rng.getrandbits(32)
    rng.seed(seed)
    mark = f"61.{os.getpid()}{seed % 100_000:05d}"
    sources = [
        f"sleep {mark}",
        f"setsid sleep {mark} & wait",
        f"env -i setsid sh -c 'sleep {mark} &'; exec sleep {mark}",
    ]

    def work(request: Received) -> Reply:
        done = sum(message["role"] == "tool" for message in request.body["messages"])
        if done >= 12:
            return Reply(calls=[Call("bash", {"command": f"sleep {mark}"})])
        return Reply(
            calls=[background(sources[done % 3]), Call("bash", {"command": f"setsid sleep {mark} >/dev/null 2>&1 &"})]
        )

    def orphans() -> list[int]:
        command = f"sleep\0{mark}\0".encode()
        return [pid for pid in pids() if cmdline(pid) == command]

    with server(work) as model:
        home.configure(SETTINGS, model.url)
        killed = 0
        for number in range(20):
            model.requests.clear()
            with start("-t", "-C", f"run{number}", "go", home=home) as run:
                wait_until(lambda: len(model.requests) > 0)
                killed += kill_at(run, rng.uniform(0, 0.5))
                wait_until(lambda: not orphans(), what=f"the end of all (seed {seed})")
    assert killed == 20


def pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.slow
def test_a_command_that_reads_nothing_does_not_hold_up_the_run(home: HomeDir) -> None:
    text = "x" * 500_000

    def work(request: Received) -> Reply:
        results = [m["content"] for m in request.body["messages"] if m["role"] == "tool"]
        if not results:
            return Reply(calls=[background("exec sleep 600", stdin=True)])
        task = re.search(r"as task (\w+)", results[0])
        if len(results) > 2 or task is None:
            return Reply("done")
        return Reply(calls=[Call("bash", {"command": text if len(results) == 1 else "ls", "input_to": task[1]})])

    with server(work) as model:
        home.configure(url=model.url)
        done = cru("-t", "go", home=home)
        results = [m["content"] for m in model.requests[-1].body["messages"] if m["role"] == "tool"]
    assert done.code == 0
    assert "does not read its input; a part of the text may have gone in" in results[1]
    assert "has got the last text in part" in results[2]


ODD_BYTES = r"printf 'a\033[2Jb\r\377\342\202'; sleep 0.1; printf '\254c\0d\n\033]0;title\007e\n'"


def test_odd_bytes_reach_the_model_whole_and_the_terminal_without_their_power(home: HomeDir) -> None:
    def work(request: Received) -> Reply:
        results = [m["content"] for m in request.body["messages"] if m["role"] == "tool"]
        task = re.search(r"as task (\w+)", results[0]) if results else None
        if not results:
            return Reply(calls=[background(ODD_BYTES)])
        if len(results) > 1 or task is None:
            return Reply("done")
        return Reply(calls=[Call("task_output", {"id": task[1], "wait": 30})])

    with server(work) as model:
        home.configure(url=model.url)
        assert cru("-t", "go", home=home).code == 0
        results = [m["content"] for m in model.requests[-1].body["messages"] if m["role"] == "tool"]
    assert results[1] == "a\x1b[2Jb\r\ufffd€c\x00d\n\x1b]0;title\x07e\n[it has ended well]"
    (row,) = json.loads(cru("tasks", "--json", home=home).out)
    with pty("tasks", "show", row["id"], home=home) as terminal:
        terminal.wait()
        shown = terminal.text
    assert "title" in shown and "\x1b[2J" not in shown and "\x1b]0;" not in shown


@needs_mounts
def test_a_full_disk_is_told_and_the_command_runs_on(home: HomeDir) -> None:
    folder = home.context()
    command = "seq 1 400000; touch printed"
    waits = Call("bash", {"command": "until [ -e printed ]; do sleep 0.01; done"})
    with server([Reply(calls=[background(command), waits]), Reply("done"), Reply("I see")]) as model:
        home.configure(url=model.url)
        folder.mkdir(parents=True)
        assert os.system(f"mount -t tmpfs -o size=1m tmpfs '{folder}'") == 0
        try:
            done = cru("-t", "go", home=home)
            told = model.requests[-1].raw.decode()
        finally:
            os.system(f"umount '{folder}'")
    assert (home.project / "printed").exists()
    assert "Traceback" not in done.err
    assert "bytes of its output could not be saved: No space left on device" in told, (done, told[-800:])
