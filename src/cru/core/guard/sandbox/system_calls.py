"""A filter of system calls (seccomp) for confined commands, as the BPF program that bubblewrap loads.

It denies what no everyday program needs and what attacks the kernel or undoes the sandbox. A denied call fails with an error after which
programs fall back, so none of them is killed. Calls that need a capability are left out: a confined command has none.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping

from msgspec import Struct

_LOAD, _JUMP, _IF_EQUAL, _IF_ANY_BIT, _RETURN = 0x20, 0x05, 0x15, 0x45, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97
_X32 = 0x40000000
"""Marks calls of a third kind on x86-64, which nearly no program makes."""
_NEW_NAMESPACES = 0x7E020000
_NEW_TIME = 0x80
"""A namespace, too, but in the flags of `clone` a part of a signal's number."""
_SET_UID = 0o4000
_CREATE = 0x40 | 0x400000
"""O_CREAT and O_TMPFILE: without them a file gets no mode."""
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_AF_VSOCK = 40
"""Leads to the machine that this one runs in, whatever the network."""


class CallCondition(Struct, frozen=True):
    """What an argument must be: one of these values, or, with `bits`, a number that has any of their bits."""

    argument: int
    values: tuple[int, ...]
    bits: bool = True


class CallRule(Struct, frozen=True):
    """A call that is denied with this error if all conditions hold."""

    error: int = _EPERM
    conditions: tuple[CallCondition, ...] = ()


def _mode(argument: int, *others: CallCondition) -> CallRule:
    return CallRule(conditions=(*others, CallCondition(argument, (_SET_UID,))))


RULES: Mapping[str, CallRule] = {
    **dict.fromkeys(("ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd"), CallRule()),
    **dict.fromkeys(("keyctl", "add_key", "request_key"), CallRule()),
    **dict.fromkeys(("bpf", "userfaultfd", "perf_event_open"), CallRule()),
    **dict.fromkeys(("mount", "umount2", "pivot_root", "setns"), CallRule()),
    **dict.fromkeys(
        ("open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr"), CallRule()
    ),
    "open_tree_attr": CallRule(_ENOSYS),
    **dict.fromkeys(("io_uring_setup", "io_uring_enter", "io_uring_register"), CallRule(_ENOSYS)),
    # their flags lie in memory, where a filter cannot look
    **dict.fromkeys(("clone3", "openat2"), CallRule(_ENOSYS)),
    "unshare": CallRule(conditions=(CallCondition(0, (_NEW_NAMESPACES | _NEW_TIME,)),)),
    "clone": CallRule(conditions=(CallCondition(0, (_NEW_NAMESPACES,)),)),
    "ioctl": CallRule(conditions=(CallCondition(1, (_TIOCSTI, _TIOCLINUX), bits=False),)),
    "socket": CallRule(_EAFNOSUPPORT, (CallCondition(0, (_AF_VSOCK,), bits=False),)),
    # of old programs of 32 bits: the same in memory
    "socketcall": CallRule(_ENOSYS, (CallCondition(0, (1,), bits=False),)),
    # whoever ran such a file outside would run it with the rights of this user
    "chmod": _mode(1),
    "fchmod": _mode(1),
    "fchmodat": _mode(2),
    "fchmodat2": _mode(2),
    "creat": _mode(1),
    "mknod": _mode(1),
    "mknodat": _mode(2),
    "open": _mode(2, CallCondition(1, (_CREATE,))),
    "openat": _mode(3, CallCondition(2, (_CREATE,))),
}
"""What is denied."""

COMMON = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429, "fsopen": 430,
    "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435, "openat2": 437, "pidfd_getfd": 438, "mount_setattr": 442,
    "fchmodat2": 452, "open_tree_attr": 467,
}  # fmt: skip
"""Numbers that are the same on every machine."""
X86_64 = COMMON | {
    "open": 2, "ioctl": 16, "socket": 41, "clone": 56, "creat": 85, "chmod": 90, "fchmod": 91, "ptrace": 101, "mknod": 133,
    "pivot_root": 155, "mount": 165, "umount2": 166, "add_key": 248, "request_key": 249, "keyctl": 250, "openat": 257, "mknodat": 259,
    "fchmodat": 268, "unshare": 272, "perf_event_open": 298, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311,
    "kcmp": 312, "bpf": 321, "userfaultfd": 323,
}  # fmt: skip
I386 = COMMON | {"socketcall": 102} | {
    "open": 5, "creat": 8, "mknod": 14, "chmod": 15, "mount": 21, "ptrace": 26, "umount2": 52, "ioctl": 54, "fchmod": 94, "clone": 120,
    "pivot_root": 217, "add_key": 286, "request_key": 287, "keyctl": 288, "openat": 295, "mknodat": 297, "fchmodat": 306,
    "unshare": 310, "perf_event_open": 336, "setns": 346, "process_vm_readv": 347, "process_vm_writev": 348, "kcmp": 349, "bpf": 357,
    "socket": 359, "userfaultfd": 374,
}  # fmt: skip
AARCH64 = COMMON | {
    "ioctl": 29, "mknodat": 33, "umount2": 39, "mount": 40, "pivot_root": 41, "fchmod": 52, "fchmodat": 53, "openat": 56,
    "unshare": 97, "ptrace": 117, "socket": 198, "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220,
    "perf_event_open": 241, "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "bpf": 280,
    "userfaultfd": 282,
}  # fmt: skip
MACHINES: Mapping[str, tuple[tuple[int, Mapping[str, int]], ...]] = {
    "x86_64": ((0xC000003E, X86_64), (0x40000003, I386)),
    "aarch64": ((0xC00000B7, AARCH64),),
}
"""Of a machine the kinds of programs that run on it, with their numbers of calls. Calls of another kind fail."""


def open_filter(machine: str = os.uname().machine) -> int:
    """Return a descriptor from which bubblewrap reads the filter, which the caller closes; -1 where none is known. Raises OSError."""
    program = assemble(machine)
    if not program:
        return -1
    descriptor = os.memfd_create("seccomp", os.MFD_CLOEXEC)
    os.write(descriptor, program)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def assemble(machine: str) -> bytes:
    """Return the filter for a machine; nothing where its numbers are not known."""
    kinds = MACHINES.get(machine, ())
    words = [(_LOAD, 0, 0, _ARCHITECTURE)]
    for architecture, numbers in kinds:
        # jumps reach 255 instructions, so the way past a table is a jump of its own
        table = list(_table(numbers, has_third_kind=machine == "x86_64"))
        words += [(_IF_EQUAL, 1, 0, architecture), (_JUMP, 0, 0, len(table)), *table]
    words.append(_deny(_ENOSYS))
    return b"".join(struct.pack("=HBBI", *word) for word in words) if kinds else b""


def _table(numbers: Mapping[str, int], *, has_third_kind: bool) -> Iterator[tuple[int, int, int, int]]:
    yield (_LOAD, 0, 0, _NUMBER)
    if has_third_kind:
        yield from ((_IF_ANY_BIT, 0, 1, _X32), _deny(_ENOSYS))
    for name, rule in RULES.items():
        if name not in numbers:  # an old call that a younger machine has not
            continue
        block = list(_block(rule))
        yield (_IF_EQUAL, 0, len(block), numbers[name])
        yield from block
    yield (_RETURN, 0, 0, _ALLOW)


def _block(rule: CallRule) -> Iterator[tuple[int, int, int, int]]:
    """Yield what is done once the number of the call is known: each condition that does not hold allows the call."""
    for condition in rule.conditions:
        yield (_LOAD, 0, 0, _ARGUMENTS + 8 * condition.argument)
        test = _IF_ANY_BIT if condition.bits else _IF_EQUAL
        for left, value in zip(range(len(condition.values), 0, -1), condition.values, strict=True):
            yield (test, left, 0, value)
        yield (_RETURN, 0, 0, _ALLOW)
    yield _deny(rule.error)


def _deny(error: int) -> tuple[int, int, int, int]:
    return (_RETURN, 0, 0, _ERROR | error)
