from __future__ import annotations

import errno
import fcntl
import os
import signal
import threading
from pathlib import Path

import msgspec
import pytest
from tests.core.conversations.support import Home, again, fresh, start
from tests.kit.waiting import PATIENCE, ends_soon, wait_until

from cru.core.conversations import ContextHeld, ContextSettings, NoSuchContext, StoreUnwritable
from cru.core.conversations.entries import now

_HOLD = """
import sys
from pathlib import Path
from cru.core.conversations.store import FileContext
with FileContext(Path(sys.argv[1])).lock("cru hello"):
    print("held", flush=True)
    sys.stdin.read()
"""

_WANT = """
import sys
from pathlib import Path
from cru.core.conversations import ContextHeld
from cru.core.conversations.store import FileContext
store = FileContext(Path(sys.argv[1]))
sys.stdin.readline()
try:
    with store.lock("cru hello"):
        print("held", flush=True)
        sys.stdin.read()
except ContextHeld:
    print("refused", flush=True)
"""


def test_while_held_the_files_say_so_in_chibis_format(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    home = Home(tmp_path / "home")
    assert (home.status("desk"), home.holder("desk"), context.is_held) == ("none", None, False)
    with context.lock("cru hello"):
        assert context.is_held
        text = (context.folder / ".lock").read_text()
        assert text.isdigit() and abs(int(text) - now()) <= 1
        owner = msgspec.json.decode((context.folder / ".lock.json").read_bytes())
        assert owner == {
            "pid": os.getpid(),
            "host": os.uname().nodename,
            "command": "cru hello",
            "since": owner["since"],
        }
        assert (home.status("desk"), home.holder("desk")) == ("active", owner)
    assert not context.is_held
    assert not (context.folder / ".lock").exists() and not (context.folder / ".lock.json").exists()


def test_the_lock_is_released_by_an_exception_and_can_be_taken_again(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    with pytest.raises(ZeroDivisionError):
        with context.lock("one"):
            _ = 1 / 0
    for _ in range(3):
        with context.lock("two"):
            assert context.is_held


def test_taking_it_twice_in_one_process_is_an_error_and_no_deadlock(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    with context.lock("one"):
        for store in (context, again(context)):
            with pytest.raises(ContextHeld, match="this process"):
                with store.lock("two"):
                    pass
        assert context.is_held, "the failed attempt does not release it"
        assert (context.folder / ".lock").exists()


def test_another_process_is_told_who_holds_it(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    with start(_HOLD, context.folder) as child:
        assert child.stdout and child.stdout.readline() == "held\n"
        with pytest.raises(ContextHeld) as caught:
            with context.lock("mine"):
                pass
        child.communicate("", timeout=PATIENCE)
    for part in (str(child.pid), os.uname().nodename, "cru hello", "since 20"):
        assert part in caught.value.message
    assert caught.value.hint and caught.value.code == 4
    with context.lock("mine"):
        pass


def test_after_kill_9_of_the_holder_it_is_free_at_once(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    home = Home(tmp_path / "home")
    with start(_HOLD, context.folder) as child:
        assert child.stdout and child.stdout.readline() == "held\n"
        assert home.status("desk") == "active"
        child.send_signal(signal.SIGKILL)
        child.wait(30)
        assert home.status("desk") == "stale"
        with context.lock("mine"):
            assert int(msgspec.json.decode((context.folder / ".lock.json").read_bytes())["pid"]) == os.getpid()


def test_a_suspended_holder_is_active_until_it_is_killed(tmp_path: Path) -> None:
    context, home = fresh(tmp_path), Home(tmp_path / "home")
    with start(_HOLD, context.folder) as child:
        assert child.stdout and child.stdout.readline() == "held\n"
        child.send_signal(signal.SIGSTOP)
        (context.folder / ".lock").write_text(str(now() - 3600))
        assert home.status("desk") == "active"
        with pytest.raises(ContextHeld):
            context.lock("mine").__enter__()
        child.send_signal(signal.SIGKILL)
        child.wait(30)
        assert home.status("desk") == "stale"


def test_an_old_lock_of_a_pid_that_lives_on_in_another_process_is_stale(tmp_path: Path) -> None:
    context, home = fresh(tmp_path), Home(tmp_path / "home")
    sign(context.folder, pid=os.getppid())
    (context.folder / ".lock").write_text(str(now() - 3600))
    assert home.status("desk") == "stale"
    with context.lock("mine"):
        assert home.status("desk") == "active"


def test_a_lock_signed_by_a_process_whose_pid_lives_on_in_another_one_is_taken_over(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    sign(context.folder, pid=os.getppid())
    with context.lock("mine"):
        assert context.is_held


def sign(folder: Path, pid: int, host: str = "") -> None:
    (folder / ".lock").write_text(str(now()))
    owner = {"pid": pid, "host": host or os.uname().nodename, "command": "cru", "since": now()}
    (folder / ".lock.json").write_bytes(msgspec.json.encode(owner))


def test_a_live_lock_of_another_host_is_respected(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    sign(context.folder, pid=1, host="elsewhere")
    with pytest.raises(ContextHeld, match="process 1 on elsewhere"):
        with context.lock("mine"):
            pass


def test_a_live_lock_of_a_chibi_process_is_respected_and_left(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    (context.folder / ".lock").write_text(f"{now()}\n")
    with pytest.raises(ContextHeld, match=r"another program: .*/desk/\.lock") as caught:
        with context.lock("mine"):
            pass
    assert "45 seconds" in caught.value.hint
    assert (context.folder / ".lock").exists()
    home = Home(tmp_path / "home")
    holder = home.holder("desk")
    assert home.status("desk") == "active" and holder is not None and list(holder) == ["since"]


@pytest.mark.parametrize("text", ["{old}", "", "soon", "9" * 30])
def test_a_stale_or_unreadable_lock_is_taken_over(tmp_path: Path, text: str) -> None:
    context = fresh(tmp_path)
    (context.folder / ".lock").write_text(text.format(old=now() - 46))
    assert Home(tmp_path / "home").status("desk") == "stale"
    with context.lock("mine"):
        assert abs(int((context.folder / ".lock").read_text()) - now()) <= 1


@pytest.mark.parametrize("name", [".lock", ".lock.json"])
def test_a_folder_in_place_of_a_lock_file_is_named(tmp_path: Path, name: str) -> None:
    context = fresh(tmp_path)
    (context.folder / name).mkdir()
    with pytest.raises(StoreUnwritable, match=rf"desk/\{name}: ") as caught:
        with context.lock("mine"):
            pass
    assert "move it away" in caught.value.hint and not context.is_held
    (context.folder / name).rmdir()
    with context.lock("mine"):
        assert context.is_held


def test_a_pipe_or_a_link_to_nowhere_in_place_of_the_lock_is_taken_over(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    os.mkfifo(context.folder / ".lock")
    with context.lock("mine"):
        assert (context.folder / ".lock").is_file()
    (context.folder / ".lock").symlink_to("nowhere")
    with context.lock("mine"):
        assert (context.folder / ".lock").is_file() and not (context.folder / "nowhere").exists()


@pytest.mark.slow
def test_of_many_processes_that_want_it_at_once_one_gets_it(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    children = [start(_WANT, context.folder) for _ in range(6)]
    try:
        for child in children:
            assert child.stdin
            child.stdin.write("go\n")
            child.stdin.flush()
        said = [child.stdout.readline() for child in children if child.stdout]
        assert sorted(said) == ["held\n"] + ["refused\n"] * 5
    finally:
        for child in children:
            child.communicate("", timeout=PATIENCE)
    assert not (context.folder / ".lock").exists()


def test_the_remains_of_a_killed_run_do_not_make_chibis_newer_lock_ours(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    sign(context.folder, pid=2**22 + 1)
    os.utime(context.folder / ".lock.json", (now() - 100, now() - 100))
    with pytest.raises(ContextHeld, match="another program"):
        with context.lock("mine"):
            pass


def test_the_heartbeat_refreshes_the_lock_and_stops(tmp_path: Path) -> None:
    home = Home(tmp_path / "home", ContextSettings(lock_heartbeat_seconds=1))
    context = home.open("desk")
    before, started = threading.active_count(), int(now())
    with context.lock("mine"):
        (context.folder / ".lock").write_text("0000000001")
        wait_until(lambda: (context.folder / ".lock").read_text() != "0000000001")
        assert int((context.folder / ".lock").read_text()) >= started
    assert threading.active_count() == before


def test_the_end_of_a_lock_does_not_wait_for_the_next_heartbeat(tmp_path: Path) -> None:
    context = Home(tmp_path / "home", ContextSettings(lock_heartbeat_seconds=600)).open("desk")
    with ends_soon(), context.lock("mine"):
        assert (context.folder / ".lock").exists()


def test_a_lock_that_another_program_took_over_is_not_removed(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    with context.lock("mine"):
        (context.folder / ".lock").rename(context.folder / "kept")
        (context.folder / ".lock").write_text("123")
    assert (context.folder / ".lock").read_text() == "123"


def test_children_do_not_inherit_the_lock(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    with context.lock("mine"):
        child = start("import sys; sys.stdin.read()")
    with child:
        assert child.poll() is None
        with context.lock("again"):
            assert context.is_held
        child.communicate("", timeout=PATIENCE)


def test_a_context_deleted_meanwhile_cannot_be_locked(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    Home(tmp_path / "home").delete("desk")
    with pytest.raises(NoSuchContext, match="desk"):
        with context.lock("mine"):
            pass


def test_the_kernels_lock_is_on_the_folder(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    fd = os.open(context.folder, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        with pytest.raises(ContextHeld, match="another process"):
            with context.lock("mine"):
                pass
    finally:
        os.close(fd)


def test_a_kill_between_the_two_lock_files_blocks_nobody(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    code = """
import os, sys
from pathlib import Path
from cru.core.conversations.store import FileContext
real = os.write
os.write = lambda fd, data: os.kill(os.getpid(), 9) if b"pid" in data else real(fd, data)
with FileContext(Path(sys.argv[1])).lock("cru"):
    pass
"""
    with start(code, context.folder) as child:
        child.communicate("", timeout=PATIENCE)
    assert child.returncode == -signal.SIGKILL and (context.folder / ".lock").exists()
    with context.lock("mine"):
        assert context.is_held


@pytest.mark.parametrize("seconds", [10**20, 0, -5])
def test_no_setting_of_the_heartbeat_breaks_the_lock(tmp_path: Path, seconds: int) -> None:
    home = Home(tmp_path / "home", ContextSettings(lock_heartbeat_seconds=seconds))
    context = home.open("desk")
    with context.lock("mine"):
        assert home.status("desk") == "active"
    (context.folder / ".lock").write_text(str(now() - 2 * 3600))
    assert home.status("desk") == "stale"
    home.rename("desk", "table")


@pytest.mark.parametrize(("number", "is_held"), [(errno.ENOTSUP, True), (errno.ENOLCK, True), (errno.EIO, False)])
def test_only_a_disk_without_locks_is_written_to_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, is_held: bool
) -> None:
    context = fresh(tmp_path)

    def refuse(fd: int, how: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    if is_held:
        with context.lock("mine"):
            assert (context.folder / ".lock").exists()
    else:
        with pytest.raises(StoreUnwritable), context.lock("mine"):
            pass


def test_a_context_replaced_while_its_lock_is_taken_is_not_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, real = fresh(tmp_path), fcntl.flock

    def raced(fd: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", real)
        context.folder.rename(tmp_path / "elsewhere")
        context.folder.mkdir()
        real(fd, how)

    monkeypatch.setattr(fcntl, "flock", raced)
    with pytest.raises(NoSuchContext, match="'desk' any more"):
        with context.lock("mine"):
            pass
    assert list(context.folder.iterdir()) == [] and not (tmp_path / "elsewhere/.lock").exists()


def test_a_context_renamed_before_the_folder_is_opened_is_not_taken_for_its_namesake(tmp_path: Path) -> None:
    context, home = fresh(tmp_path), Home(tmp_path / "home")
    lock = context.lock("mine")
    home.rename("desk", "table")
    home.open("desk")
    with pytest.raises(NoSuchContext, match="'desk' any more") as caught:
        with lock:
            pass
    assert "cru -C table" in caught.value.hint


@pytest.mark.parametrize("ahead", [46, 3600, 10**9])
def test_a_lock_with_a_time_that_is_yet_to_come_blocks_nobody(tmp_path: Path, ahead: int) -> None:
    context, home = fresh(tmp_path), Home(tmp_path / "home")
    (context.folder / ".lock").write_text(str(now() + ahead))
    assert home.status("desk") == "stale"
    with context.lock("mine"):
        assert abs(int((context.folder / ".lock").read_text()) - now()) <= 1


def test_a_clock_that_is_a_little_ahead_is_no_reason_to_take_a_live_lock(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    (context.folder / ".lock").write_text(str(now() + 20))
    with pytest.raises(ContextHeld):
        with context.lock("mine"):
            pass


def test_a_process_that_is_dead_is_not_named_to_be_ended(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    with start("", "") as dead:
        dead.communicate(timeout=PATIENCE)
    owner = {"pid": dead.pid, "host": os.uname().nodename, "command": "cru hello", "since": now()}
    fd = os.open(context.folder, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)  # a live one has it, which has not signed yet
        (context.folder / ".lock").write_text(str(now()))
        (context.folder / ".lock.json").write_bytes(msgspec.json.encode(owner))
        with pytest.raises(ContextHeld) as caught:
            with context.lock("mine"):
                pass
    finally:
        os.close(fd)
    assert str(dead.pid) not in str(caught.value) and "in use by another process" in caught.value.message
    with context.lock("mine"):
        assert context.is_held
