"""Runs `cru`, or other code, with the functions of `os` that change files replaced: they are counted, recorded, and fail or kill.

Started by tests/kit/faults.py as `python -P faults_child.py PLAN ARGUMENT...`. Only what happens below the plan's `root` counts. Writes
through Python's own file objects are not seen; cru keeps its files with the functions of `os`.
"""

from __future__ import annotations

import base64
import json
import os
import stat
import sys
import threading
from collections.abc import Callable
from typing import Any

plan: dict[str, Any] = json.loads(sys.argv[1])
root: str = os.path.realpath(plan["root"])
names: tuple[str, ...] = ("open", "write", "pwrite", "fsync", "fdatasync", "rename", "replace", "truncate", "ftruncate",
    "unlink", "remove", "mkdir", "rmdir", "link")  # fmt: skip
real: dict[str, Callable[..., Any]] = {name: getattr(os, name) for name in names}
record = real["open"](plan["record"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
guard = threading.RLock()
count = 0


def inside(path: Any, dir_fd: int | None = None) -> str | None:
    """The path below the root, None if it is elsewhere."""
    if isinstance(path, int):
        try:
            path = os.readlink(f"/proc/self/fd/{path}")
        except OSError:
            return None
    path = os.fsdecode(path)
    if dir_fd is not None:
        path = os.path.join(os.readlink(f"/proc/self/fd/{dir_fd}"), path)
    folder, name = os.path.split(os.path.abspath(path))
    full = os.path.join(os.path.realpath(folder), name)
    return os.path.relpath(full, root) if full.startswith(root + os.sep) or full == root else None


def step(op: str, path: str, **details: Any) -> None:
    """One step: it is recorded, unless it fails or kills."""
    global count
    counts = op in (plan.get("kinds") or (op,)) and path.endswith(plan.get("path", ""))
    count += counts
    if counts and count == plan.get("kill"):
        os.kill(os.getpid(), 9)
    number = plan.get("fail", 0)
    if counts and number and (count == number or (plan.get("lasting") and count > number)):
        real["write"](record, (json.dumps({"op": op, "path": path, "failed": True}) + "\n").encode())
        raise OSError(plan["errno"], os.strerror(plan["errno"]), os.path.join(root, path))
    real["write"](record, (json.dumps({"op": op, "path": path, **details}) + "\n").encode())


def open_(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
    place = inside(path, dir_fd) if flags & (os.O_CREAT | os.O_TRUNC) else None
    if place is None:
        return int(real["open"](path, flags, mode, dir_fd=dir_fd))
    with guard:
        try:
            os.stat(path, dir_fd=dir_fd)
        except FileNotFoundError:
            step("create", place)
        else:
            if flags & os.O_TRUNC and not flags & os.O_EXCL:
                step("truncate", place, size=0)
        return int(real["open"](path, flags, mode, dir_fd=dir_fd))


def write_(fd: int, data: Any, at: int | None = None) -> int:
    place = inside(fd)
    if place is None or not stat.S_ISREG(os.fstat(fd).st_mode):
        return int(real["write"](fd, data) if at is None else real["pwrite"](fd, data, at))
    import fcntl

    with guard:
        appends = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND
        where = at if at is not None else os.fstat(fd).st_size if appends else os.lseek(fd, 0, os.SEEK_CUR)
        step("write", place, at=where, data=base64.b64encode(bytes(data)).decode())
        return int(real["write"](fd, data) if at is None else real["pwrite"](fd, data, at))


def sync(name: str) -> Callable[[int], None]:
    def call(fd: int) -> None:
        place = inside(fd)
        with guard:
            if place is not None:
                step("sync", place)
            real[name](fd)

    return call


def truncate(name: str) -> Callable[[Any, int], None]:
    def call(target: Any, size: int) -> None:
        place = inside(target)
        with guard:
            if place is not None:
                step("truncate", place, size=size)
            real[name](target, size)

    return call


def rename(name: str, op: str) -> Callable[..., None]:
    def call(old: Any, new: Any, **more: Any) -> None:
        place, target = inside(old, more.get("src_dir_fd")), inside(new, more.get("dst_dir_fd"))
        with guard:
            if place is not None and target is not None:
                step(op, place, to=target)
            real[name](old, new, **more)

    return call


def remove(name: str, op: str) -> Callable[..., None]:
    def call(path: Any, *args: Any, **more: Any) -> None:
        place = inside(path, more.get("dir_fd"))
        with guard:
            if place is not None and os.path.lexists(os.path.join(root, place)) == (op != "mkdir"):
                step(op, place)
            real[name](path, *args, **more)

    return call


def install() -> None:
    os.open, os.write = open_, write_
    os.pwrite = lambda fd, data, at: write_(fd, data, at)
    for name in ("fsync", "fdatasync"):
        setattr(os, name, sync(name))
    for name in ("truncate", "ftruncate"):
        setattr(os, name, truncate(name))
    for name, op in (("rename", "rename"), ("replace", "rename"), ("link", "link")):
        setattr(os, name, rename(name, op))
    for name, op in (("unlink", "unlink"), ("remove", "unlink"), ("rmdir", "rmdir"), ("mkdir", "mkdir")):
        setattr(os, name, remove(name, op))


if __name__ == "__main__":
    sys.argv = ["cru", *sys.argv[2:]]
    install()
    if plan.get("code"):
        exec(compile(plan["code"], "<code>", "exec"), {"__name__": "__main__"})
    else:
        from cru.faces.cli.main import main

        main()
