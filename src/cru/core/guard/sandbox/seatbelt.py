"""sandbox-exec of macOS: the profile as text in its language (SBPL), of two rules that mean one thing the later one decides.

Written after Apple's own profiles and those of other programs, and tested as text: nobody has tried it on a Mac yet (docs/sandbox.md).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from cru.core.guard.sandbox import VARIABLE
from cru.core.guard.sandbox.backends import SEATBELT
from cru.core.guard.sandbox.bubblewrap import FORGOTTEN, SHELL
from cru.core.guard.sandbox.profile import Profile

BASE = """\
(version 1)
(deny default)
(allow process-exec process-fork)
(allow process-info* signal (target same-sandbox))
(allow sysctl-read)
(allow ipc-posix-sem ipc-posix-shm)
(allow mach-lookup
  (global-name "com.apple.bsd.dirhelper")
  (global-name "com.apple.system.logger")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.opendirectoryd.membership"))
(allow file-read*)
(allow file-write-data file-ioctl
  (literal "/dev/dtracehelper") (literal "/dev/null") (literal "/dev/ptmx") (literal "/dev/tty") (literal "/dev/zero"))
"""
"""What every program needs. No Mach services that start programs, open windows or hand out keys."""
NETWORK = """\
(allow network* system-socket)
(allow mach-lookup
  (global-name "com.apple.SystemConfiguration.configd")
  (global-name "com.apple.trustd.agent"))
"""
READ, WRITE = "file-read*", "file-write*"


def command_line(
    program: str, profile: Profile, argv: tuple[str, ...], *, outlives_us: bool = False
) -> tuple[str, ...]:
    """What runs `argv` confined, in the folder in which it is started. It is the command itself: nothing watches over it."""
    variables = [f"{name}={value}" for name, value in profile.variables]
    forgotten = [word for name in FORGOTTEN if name != "TMPDIR" for word in ("-u", name)]
    own = [f"TMPDIR={profile.temporary}", f"{VARIABLE}={SEATBELT}", *variables]
    return (program, "-p", render(profile), "/usr/bin/env", *forgotten, *own, *_limited(profile), *argv)


def with_variables(argv: Sequence[str], variables: Mapping[str, str]) -> tuple[str, ...]:
    """The same, with these variables for the command alone."""
    first = next(at for at, word in enumerate(argv) if word.startswith("TMPDIR="))
    return (*argv[:first], *(f"{name}={value}" for name, value in variables.items()), *argv[first:])


def render(profile: Profile) -> str:
    """The profile as text."""
    rules = sorted(_rules(profile), key=lambda rule: rule[2].rstrip("/").count("/"))
    lines = [f"({decision} {operations} (subpath {_quote(path)}))" for decision, operations, path in rules]
    # whoever could move a folder away could make its guards anew
    lines += [f"(deny file-write-unlink (literal {_quote(path)}))" for path in _holders(profile)]
    return "\n".join([BASE + (NETWORK if profile.network else ""), *lines, ""])


def _rules(profile: Profile) -> Iterator[tuple[str, str, str]]:
    """Decision, operations, path. Sorting them by depth keeps the order of those that are equally deep."""
    for path in (*profile.writable, profile.temporary):
        yield "allow", f"{READ} {WRITE}", path
    for path in profile.hidden:
        yield "deny", f"{READ} {WRITE}", path
    for path in (*profile.readable, *profile.read_only):
        yield "allow", READ, path
        yield "deny", WRITE, path
    for path in profile.absent:
        yield "deny", WRITE, path


def _holders(profile: Profile) -> list[str]:
    """The folders between what may be written and a guard in it."""
    holders: dict[str, None] = {}
    for guard in (*profile.read_only, *profile.absent):
        roots = [root for root in profile.writable if guard.startswith(f"{root.rstrip('/')}/")]
        folder = os.path.dirname(guard)
        while roots and folder != min(roots, key=len):
            holders[folder] = None
            folder = os.path.dirname(folder)
    return sorted(holders)


def _quote(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _limited(profile: Profile) -> tuple[str, ...]:
    """Address space cannot be limited there."""
    limits = profile.limits
    values = (("t", limits.cpu), ("f", limits.file_size >> 9), ("u", limits.processes))  # in the units of `ulimit`
    commands = [f"ulimit -{option} {value}" for option, value in values if value]
    return (SHELL, "-c", f'{" && ".join(["ulimit -c 0", *commands])} && exec "$@"', SHELL) if commands else ()
