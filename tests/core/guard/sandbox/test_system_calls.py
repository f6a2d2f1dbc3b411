"""The filter of system calls: what it denies on each machine, and that programs go on with what it leaves."""

from __future__ import annotations

import errno
import os
import shutil
import struct

import pytest
from tests.core.guard.sandbox.conftest import Surroundings
from tests.core.guard.sandbox.playing import run
from tests.kit.sandbox import needs_sandbox

from cru.core.guard.sandbox.backends import backend_path
from cru.core.guard.sandbox.system_calls import AARCH64, I386, MACHINES, RULES, X86_64, assemble

ALLOW = 0x7FFF0000
BWRAP = backend_path(os.environ)
NAMES = {0xC000003E: X86_64, 0x40000003: I386, 0xC00000B7: AARCH64}


def judge(machine: str, architecture: int, number: int, *arguments: int) -> int:
    """Return the error with which the filter denies a call, 0 if it allows it."""
    program = list(struct.iter_unpack("=HBBI", assemble(machine)))
    data = struct.pack("=IIQ6Q", number, architecture, 0, *arguments, *[0] * (6 - len(arguments)))
    at, value = 0, 0
    while True:
        code, if_true, if_false, operand = program[at]
        at += 1
        if code == 0x20:
            (value,) = struct.unpack_from("=I", data, operand)
        elif code == 0x05:
            at += operand
        elif code in (0x15, 0x45):
            at += if_true if (value == operand if code == 0x15 else value & operand) else if_false
        else:
            assert code == 0x06
            return 0 if operand == ALLOW else operand & 0xFFFF


CALLS: dict[str, tuple[tuple[int, ...], int]] = {
    "ptrace": ((16,), errno.EPERM), "keyctl": ((), errno.EPERM), "bpf": ((), errno.EPERM), "userfaultfd": ((), errno.EPERM),
    "mount": ((), errno.EPERM), "move_mount": ((), errno.EPERM), "setns": ((), errno.EPERM), "perf_event_open": ((), errno.EPERM),
    "io_uring_setup": ((8,), errno.ENOSYS), "clone3": ((), errno.ENOSYS), "openat2": ((), errno.ENOSYS),
}  # fmt: skip
BY_ARGUMENTS: list[tuple[str, tuple[int, ...], int]] = [
    ("unshare", (0x10000000,), errno.EPERM), ("unshare", (0x00020000,), errno.EPERM), ("unshare", (0x80,), errno.EPERM),
    ("unshare", (0x400,), 0), ("unshare", (0x10000000 | 0x400,), errno.EPERM),
    ("clone", (0x10000000 | 17,), errno.EPERM), ("clone", (0x40000000,), errno.EPERM), ("clone", (0x3D0F00,), 0), ("clone", (17,), 0),
    ("ioctl", (0, 0x5412), errno.EPERM), ("ioctl", (0, 0x541C), errno.EPERM), ("ioctl", (0, 0x5413), 0), ("ioctl", (0x5412, 0), 0),
    ("socket", (40, 1), errno.EAFNOSUPPORT), ("socket", (1, 40), 0), ("socket", (2, 1), 0), ("socketcall", (1,), errno.ENOSYS),
    ("socketcall", (3,), 0), ("chmod", (0, 0o4755), errno.EPERM), ("chmod", (0, 0o2755), 0), ("chmod", (0, 0o755), 0),
    ("fchmod", (3, 0o4000), errno.EPERM), ("fchmodat", (0, 0, 0o4755), errno.EPERM), ("fchmodat", (0o4755, 0, 0o755), 0),
    ("fchmodat2", (0, 0, 0o6755), errno.EPERM), ("creat", (0, 0o4755), errno.EPERM), ("mknodat", (0, 0, 0o104755), errno.EPERM),
    ("open", (0, 0x41, 0o4755), errno.EPERM), ("open", (0, 0, 0o4755), 0), ("open", (0, 0x41, 0o644), 0),
    ("openat", (0, 0, 0x40, 0o4755), errno.EPERM), ("openat", (0, 0, 0x410002, 0o4644), errno.EPERM),
    ("openat", (0, 0, 0o2000000, 0o4755), 0),
]  # fmt: skip


@pytest.mark.parametrize(
    ("machine", "architecture"), [(name, kind) for name, kinds in MACHINES.items() for kind, _ in kinds]
)
def test_the_filter_denies_what_its_table_says(machine: str, architecture: int) -> None:
    numbers = NAMES[architecture]
    for name, (arguments, error) in CALLS.items():
        assert judge(machine, architecture, numbers[name], *arguments) == error, name
    rows = [row for row in BY_ARGUMENTS if row[0] in numbers]
    assert [row for row in rows if judge(machine, architecture, numbers[row[0]], *row[1]) != row[2]] == []
    allowed = set(range(500)) - set(numbers.values())
    assert {judge(machine, architecture, number, *[2**64 - 1] * 6) for number in allowed} == {0}
    assert set(numbers) <= RULES.keys() and judge(machine, 1, 1) == errno.ENOSYS


def test_calls_of_the_third_kind_fail_and_other_machines_have_no_filter() -> None:
    assert judge("x86_64", 0xC000003E, 0x40000000 | X86_64["ptrace"]) == errno.ENOSYS
    assert assemble("riscv64") == b""


DENIED = {
    "chmod 4755": "cp /bin/true own; chmod 4755 own; test -u own && echo UNDENIED",
    "install -m 4755": "install -m 4755 /bin/true own; test -u own && echo UNDENIED",
    "an open that makes a file": "python3 -c 'import os; os.open(\"own\", os.O_CREAT, 0o4755)'; test -u own && echo UNDENIED",
    "tar": "tar xf given.tar; test -u own && echo UNDENIED",
    "user namespaces": "unshare -r true && echo UNDENIED",
    "a sandbox of its own": "{bwrap} --bind / / true && echo UNDENIED",
    "ptrace": "python3 -c 'import ctypes; print(ctypes.CDLL(None).ptrace(0, 0, 0, 0))' | grep -qx 0 && echo UNDENIED",
    "keys of the kernel": "python3 -c 'import ctypes; print(ctypes.CDLL(None).syscall(250, 0, -3, 1))' | grep -qx -- -1 || echo UNDENIED",
}
PROGRAMS = {
    "python3 -c 'import threading; t = threading.Thread(target=print, args=(1,)); t.start(); t.join()'": "1",
    "python3 -c 'import multiprocessing as m; print(*m.Pool(2).map(abs, [-8]))'": "8",
    "python3 -c 'import asyncio; print(asyncio.run(asyncio.sleep(0, 2)))'": "2",
    """node -e 'require("fs").readFile("/etc/passwd", (error) => console.log(error || 3))'""": "3",
    """node -e 'require("child_process").exec("echo 9", (error, out) => console.log(out.trim()))'""": "9",
    'node -e \'new (require("worker_threads").Worker)("console.log(4)", {eval: true})\'': "4",
    "git init -q a && cd a && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git gc -q && git log --format=%s": "x",
    "printf 'int main(void) { return 0; }' > a.c && gcc -o a.out a.c && ./a.out && echo 5": "5",
    "java -version 2>/dev/null && echo 6": "6",
    "mkdir d && chmod 2775 d && chmod 1777 d && install -m 755 /bin/true t && ./t && echo 7": "7",
}


@needs_sandbox
@pytest.mark.skipif(os.uname().machine not in MACHINES, reason="there is no filter for this machine")
def test_no_command_does_what_is_denied(surroundings: Surroundings) -> None:
    bwrap = shutil.which("bwrap", path=BWRAP) or "bwrap"
    project = surroundings.here.project
    (project / "own").write_bytes(b"")
    (project / "own").chmod(0o4755)
    shutil.make_archive(str(project / "given"), "tar", project, "own")
    (project / "own").unlink()
    results = run(surroundings, [f"rm -f own; {command}".replace("{bwrap}", bwrap) for command in DENIED.values()])
    assert [row for row in zip(DENIED, results, strict=True) if "UNDENIED" in row[1][0]] == []


@pytest.mark.slow
@needs_sandbox
def test_programs_do_without_what_is_denied(surroundings: Surroundings) -> None:
    here = [command for command in PROGRAMS if shutil.which(command.split()[0])]
    results = run(surroundings, here)
    expected = [f"0 {PROGRAMS[command]}" for command in here]
    assert [output.strip() for output, _ in results] == expected and len(here) >= 3
