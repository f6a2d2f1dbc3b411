"""A forked run is as a started one: what it prints, how it ends, what it leaves on disk, and what it sees of itself."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct, json
from tests.kit import Done, HomeDir, cru, forked, home, pty, start, wait_until
from tests.kit.processes import is_running
from tests.kit.run import program

ROOT = Path(__file__).parents[2]

HEAD = "#!/usr/bin/env python3\n# forkable: it is made for this\n"
STATE = """
import atexit, gc, json, locale, os, resource, signal, sys, threading, time, warnings
streams = [
    [s.name, s.mode, s.encoding, s.errors, s.newlines, s.line_buffering, s.write_through, s.isatty(), s.fileno(), s.buffer.raw.name,
     type(s.buffer).__name__, s.buffer.raw.mode, s.buffer.raw.closefd]
    for s in (sys.stdin, sys.stdout, sys.stderr)
]
main = sys.modules["__main__"]
print(json.dumps({
    "argv": sys.argv, "orig_argv": sys.orig_argv[1:], "path": sys.path, "flags": list(sys.flags),
    "environ": list(os.environ.items()), "cwd": os.getcwd(), "umask": os.umask(0), "streams": streams,
    "dunder": [sys.__stdin__ is sys.stdin, sys.__stdout__ is sys.stdout, sys.__stderr__ is sys.stderr],
    "main": [main.__name__, main.__file__, main.__spec__, main.__package__, main.__doc__, type(main.__loader__).__name__],
    "limits": [resource.getrlimit(k) for k in range(16)], "files": sorted(os.listdir("/proc/self/fd")),
    "session": [os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid()],
    "signals": [str(signal.getsignal(n)) for n in sorted(signal.valid_signals())],
    "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())), "wakeup": signal.set_wakeup_fd(-1),
    "threads": len(os.listdir("/proc/self/task")), "main thread": threading.current_thread().name,
    "gc": [gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()],
    "hooks": [sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__, sys.gettrace(), sys.getprofile()],
    "locale": locale.setlocale(locale.LC_ALL), "zone": time.tzname, "recursion": sys.getrecursionlimit(), "switch": sys.getswitchinterval(),
    "warnings": [str(f) for f in warnings.filters], "umask again": os.umask(0o22), "nice": os.nice(0), "modules": sorted(sys.modules),
}))
"""
ENDS = {
    "a status": "raise SystemExit(7)",
    "a text": "raise SystemExit('so it ends')",
    "what it printed last": "print('kept', end='')",
    "a traceback": "def f(): return {}['nothing']\nf()",
    "an interrupt": "raise KeyboardInterrupt",
    "a signal": "import os; print('lost', flush=True); os.kill(os.getpid(), 15)",
    "kill": "import os; os.kill(os.getpid(), 9)",
    "an abort": "import resource, os; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); os.abort()",
    "_exit": "import os; print('lost'); os._exit(3)",
    "what is called at the end": "import atexit, sys; atexit.register(print, 'bye')",
    "a thread that goes on": "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.05), print('later'))).start()",
    "a descriptor of its own": "import os; os.write(3, b'x')",
}
MODEL = """\
call: bash {"command": "echo from the tool; echo also >&2; umask; exit 3"}
---
text: Well done.
---
text: And again.
"""


COMMANDS = (
    "--version", "--help", "--help --json", "--nope", "-L", "-l", "", "hello", "--json hello", "-t hello", "--mode trust hello",
    "-C new:x hello", "-c two hello", "-v hello", "-g 0", "plugin list", "hooks check", "trust", "models", "-d nobody",
)  # fmt: skip


class Outcome(Struct, frozen=True):
    """How a run ended and what it left: files by name, with their text."""

    done: Done
    files: dict[str, str]


def forked_and_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Callable[[HomeDir], Done]
) -> tuple[Outcome, Outcome]:
    """The same in two fresh homes of one name."""
    outcomes = []
    for forces in (False, True):
        monkeypatch.setattr(forked, "_forces", [forces])
        folder = tmp_path / "both"
        folder.mkdir()
        here = home(folder, config='model = "scripted:model.txt"\n')
        (here.project / "model.txt").write_text(MODEL)
        done = run(here)
        outcomes.append(Outcome(Done(done.code, plain(done.out), plain(done.err)), files(folder)))
        folder.rename(tmp_path / f"both-{forces}")
    return outcomes[0], outcomes[1]


def files(folder: Path) -> dict[str, str]:
    paths = sorted(folder.rglob("*"))
    return {plain(str(path.relative_to(folder))): plain(path.read_text()) if path.is_file() else "/" for path in paths}


def plain(text: str) -> str:
    """Without what differs from run to run: ids and times."""
    return re.sub(r"\d+", "#", re.sub(r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\b[0-9a-f]{8,}\b", "#", text))


@pytest.fixture(params=["forked", "started"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to start a run that is killed or observed."""
    monkeypatch.setattr(forked, "_forces", [request.param == "started"])
    return str(request.param)


def script(folder: Path, source: str) -> Path:
    path = folder / "script"
    path.write_text(HEAD + source)
    path.chmod(0o755)
    return path


def observed(home: HomeDir, **options: Any) -> dict[str, Any]:
    done = cru("word", "", "ü", home=home, script=script(home.path, STATE), **options)
    assert (done.code, done.err) == (0, ""), done
    return dict(json.decode(done.out))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_line_does_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    forked, started = forked_and_started(tmp_path, monkeypatch, lambda here: cru(*command.split(), home=here))
    assert forked.done == started.done
    assert forked.files == started.files


def test_input_reaches_it_through_a_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forked, started = forked_and_started(tmp_path, monkeypatch, lambda here: cru(home=here, input="hellö\n" * 30_000))
    assert forked == started and "hellö" in forked.files["home/.cru/contexts/default/context.jsonl"]


@pytest.mark.parametrize("source", ENDS.values(), ids=ENDS)
def test_a_program_ends_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    run = lambda here: cru(home=here, script=script(here.path, source))  # noqa: E731
    forked, started = forked_and_started(tmp_path, monkeypatch, run)
    assert forked.done == started.done
    assert forked.files == started.files


def test_it_sees_the_same_of_itself(home: HomeDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the modules that are loaded: those of every run, and no other."""
    monkeypatch.setattr(forked, "_forces", [False])
    warm = observed(home, env={"CRU_MODE": "ask", "EMPTY": ""}, cwd=home.path)
    monkeypatch.setattr(forked, "_forces", [True])
    fresh = observed(home, env={"CRU_MODE": "ask", "EMPTY": ""}, cwd=home.path)
    assert set(fresh.pop("modules")) <= {*(modules := warm.pop("modules")), "json"}
    assert "asyncio" in modules and "tests" not in modules and "tests.kit" not in modules
    assert warm == fresh


@pytest.mark.parametrize(
    "env",
    [{"LANG": "C"}, {"LC_ALL": "C"}, {"TZ": "Asia/Tokyo"}, {"PYTHONUTF8": "1"}, {"PATH": "/usr/bin:/bin"}],
    ids=str,
)
def test_what_the_interpreter_reads_is_a_reason_to_start_it(home: HomeDir, env: dict[str, str]) -> None:
    assert not forked.may_fork([str(program())], {**home.env, **env})
    assert forked.may_fork([str(program())], home.env)


def test_another_script_is_started_unless_it_says_that_it_may_be_forked(home: HomeDir) -> None:
    path = script(home.path, "")
    assert forked.may_fork([str(path)], home.env)
    path.write_text("#!/usr/bin/env python3\n")
    assert not forked.may_fork([str(path)], home.env)


def test_this_process_s_limits_and_mask_reach_it(home: HomeDir, way: str) -> None:
    """Lower than those that the server began with."""
    cru("--version", home=home)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    mask = os.umask(0o077)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))
        state = observed(home)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        os.umask(mask)
    assert state["limits"][resource.RLIMIT_NOFILE] == [soft - 1, hard] and state["umask"] == 0o077


def test_two_runs_share_no_randomness(home: HomeDir, way: str) -> None:
    path = script(home.path, "import random, uuid, os; print(random.random(), uuid.uuid4(), os.urandom(4))")
    assert cru(home=home, script=path).out != cru(home=home, script=path).out


def test_what_a_run_changes_reaches_no_other_run(home: HomeDir, way: str) -> None:
    change = (
        "import sys, os, asyncio; asyncio.run = None; os.environ['LEFT'] = '1'; os.chdir('/'); sys.path.append('x')"
    )
    before = observed(home)
    assert cru(home=home, script=script(home.path, change)).code == 0
    assert observed(home) == before


def test_runs_at_once_are_apart(home: HomeDir, way: str) -> None:
    path = script(home.path, "import sys; print(sys.argv[1], sys.stdin.read())")
    with ThreadPoolExecutor(8) as pool:
        outs = list(pool.map(lambda n: cru(str(n), home=home, script=path, input=f"in {n}").out, range(24)))
    assert outs == [f"{n} in {n}\n" for n in range(24)]


def test_one_that_does_not_end_is_killed_with_what_it_started(home: HomeDir, way: str) -> None:
    source = "import subprocess, time; print(subprocess.Popen(['sleep', '60']).pid, flush=True); time.sleep(60)"
    with pytest.raises(AssertionError, match="still running after 1 s") as failure:
        cru(home=home, script=script(home.path, source), timeout=1)
    child = re.search(r"out: (\d+)", str(failure.value))
    assert child, failure.value
    wait_until(lambda: not is_running(int(child[1])))


SEAT = """
import json, os, select, sys
os.close(os.open("/dev/tty", os.O_RDWR))
streams = [stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)]
print(json.dumps([*streams, os.tcgetpgrp(0) == os.getpgrp() == os.getsid(0), *os.get_terminal_size()]), flush=True)
while not select.select([0], [], [], 0.1)[0]:  # a signal just before a read would not end that
    pass
print(sys.stdin.readline())
"""


def test_it_sits_at_its_terminal(home: HomeDir, way: str) -> None:
    with pty(home=home, script=script(home.path, SEAT)) as terminal:
        terminal.expect("[true, true, true, true, 80, 24]")
        terminal.key("c-c")
        assert terminal.wait() == -signal.SIGINT
        assert "KeyboardInterrupt" in terminal.text
    with pty(home=home, script=script(home.path, SEAT)) as terminal:
        terminal.expect("80, 24]")
        pid = terminal.pid
        terminal.line("typed")
        assert terminal.wait() == 0
        assert "typed" in terminal.text and not is_running(pid)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
def test_a_run_in_the_background_can_be_signalled(home: HomeDir, way: str, number: signal.Signals) -> None:
    path = script(home.path, "import sys; print('ready', flush=True); print(sys.stdin.read())")
    with start(home=home, script=path, stdin=True) as run:
        run.wait_for("ready")
        assert run.alive
        run.signal(number)
        assert (run.wait().code, run.alive) == (-number, False)
    with start(home=home, script=path, stdin=True) as run:
        run.write("words")
        run.end_input()
        assert (run.wait().code, run.out) == (0, "ready\nwords\n")


OWNER = """
import os, sys
from pathlib import Path
from tests.kit import cru, home, forked
here = home(Path(sys.argv[1]))
assert cru("--version", home=here).out
run = forked.run_process([str(Path(sys.argv[2]))], cwd=here.project, env=here.env, stdin=-3, stdout=-3, stderr=-3)
print(forked.running().pid, run.pid, flush=True)
{end}
"""


@pytest.mark.parametrize("end", ["", "os._exit(1)", "os.kill(os.getpid(), 9)"])
def test_the_server_ends_with_its_client_and_so_do_the_runs(tmp_path: Path, end: str) -> None:
    path = script(tmp_path, "import time; time.sleep(60)")
    owner = subprocess.run(
        [sys.executable, "-c", OWNER.format(end=end), str(tmp_path), str(path)], capture_output=True, text=True,
        env={"PYTHONPATH": str(ROOT), "PATH": os.defpath}, timeout=30,
    )  # fmt: skip
    pids = [int(word) for word in owner.stdout.split()]
    assert len(pids) == 2, owner
    wait_until(lambda: not any(map(is_running, pids)))


@pytest.mark.real_start
def test_a_test_can_ask_for_real_starts(home: HomeDir) -> None:
    assert not forked.may_fork([str(program())], home.env)
