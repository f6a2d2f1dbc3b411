"""bubblewrap: namespaces of its own for files, processes, users, the network (https://github.com/containers/bubblewrap)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence

from cru.core.guard.sandbox import VARIABLE
from cru.core.guard.sandbox.backends import BUBBLEWRAP
from cru.core.guard.sandbox.profile import CommandLimits, Profile

FORGOTTEN = ("DBUS_SESSION_BUS_ADDRESS", "GPG_AGENT_INFO", "SSH_AGENT_PID", "SSH_AUTH_SOCK", "TMPDIR")
"""Variables that lead to what is not there any more."""
RESOLVERS = ("/run/systemd/resolve", "/run/NetworkManager", "/run/resolvconf")
"""Where /etc/resolv.conf may lead: a network without names is of little use."""
SHELL = "/bin/sh"
DISABLE_USERNS = "--disable-userns"
"""Since bubblewrap 0.8: in a namespace of its own a command would have capabilities again, and with them more of the kernel to attack."""
PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy")
SOCKET, PORT = "/run/cru-proxy.sock", 31280
"""The proxy of hosts as it is inside: each command has a loopback of its own, so one number will do."""
RELAY = os.path.join(os.path.dirname(__file__), "relay.py")


def command_line(
    program: str,
    profile: Profile,
    argv: tuple[str, ...],
    *,
    outlives_us: bool = False,
    has_user_namespaces: bool = False,
    call_filter: int = -1,
) -> tuple[str, ...]:
    """What runs `argv` confined. Everything that it leaves running ends with it, unless it outlives this process.

    has_user_namespaces: this bubblewrap cannot keep the command from making further ones
    call_filter: a descriptor of a filter of system calls; -1: there is none
    """
    words = [program, *_namespaces(profile, outlives_us=outlives_us), *_machine(profile)]
    if call_filter >= 0:
        words += ["--seccomp", str(call_filter)]
    if not has_user_namespaces:
        words.append(DISABLE_USERNS)
    words += ["--bind", profile.temporary, "/tmp"]
    mounts = list(_mounts(profile))
    between = _between([mount[-1] for mount in mounts])
    mounts += [("--tmpfs", path) for path in between]
    for mount in sorted(mounts, key=lambda mount: mount[-1].count("/")):
        words += mount
    # at last: in a folder that cannot be changed nothing can be mounted that is not there
    shut = [*between, *(path for path in profile.hidden if os.path.isdir(path))]
    words += [word for path in shut for word in ("--remount-ro", path)]
    for name in FORGOTTEN:
        words += ["--unsetenv", name]
    for name, value in profile.variables:
        words += ["--setenv", name, value]
    words += ["--setenv", VARIABLE, BUBBLEWRAP, "--chdir", profile.folder or profile.root]
    return (
        *words,
        *(_through(profile.proxy, profile.forwards) if profile.proxy else ("--",)),
        *_limited(profile.limits),
        *argv,
    )


def _namespaces(profile: Profile, *, outlives_us: bool) -> Iterator[str]:
    yield from (f"--unshare-{kind}" for kind in ("user", "ipc", "pid", "uts", "cgroup-try"))
    yield from ("--cap-drop", "ALL", "--new-session")
    if not profile.network:
        yield "--unshare-net"
    if not outlives_us:
        yield "--die-with-parent"


def _machine(profile: Profile) -> Iterator[str]:
    """All of it, as it is or read-only, and its own devices and processes."""
    is_open = "/" in profile.writable
    yield from ("--bind" if is_open else "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
    # settings of the machine, which root may change without any capability
    yield from ("--ro-bind", "/proc/sys", "/proc/sys")
    if is_open:
        yield from ("--ro-bind-try", "/sys", "/sys")
    yield from ("--tmpfs", "/run")
    if profile.network:
        for folder in RESOLVERS:
            yield from ("--ro-bind-try", folder, folder)


def with_variables(argv: Sequence[str], variables: Mapping[str, str]) -> tuple[str, ...]:
    """The same, with these variables for the command alone."""
    words = [word for name, value in variables.items() for word in ("--setenv", name, value)]
    return (argv[0], *words, *argv[1:])


def _through(proxy: str, forwards: tuple[str, ...]) -> Iterator[str]:
    """The proxy as a port inside, and what names it to programs; behind these words stands the command. Ports of this machine are ports
    inside: programs go there directly, since what they start inside is at the same names."""
    yield from ("--ro-bind", proxy, SOCKET)
    for name in PROXY_VARIABLES:
        yield from ("--setenv", name, f"http://127.0.0.1:{PORT}")
        yield from ("--setenv", name.upper(), f"http://127.0.0.1:{PORT}")
    for name in ("no_proxy", "NO_PROXY"):
        yield from ("--setenv", name, "localhost,127.0.0.1,::1")
    yield from ("--setenv", "NODE_USE_ENV_PROXY", "1")
    yield from ("--", sys.executable, "-I", "-S", RELAY, SOCKET, str(PORT), ",".join(forwards))


def _mounts(profile: Profile) -> Iterator[tuple[str, ...]]:
    """The inner path comes later: sorting them keeps the order of those that are equally deep."""
    for path in profile.writable:
        if path != "/":  # which is the first of all
            yield ("--bind", path, path)
    for layer in profile.caches:
        yield ("--overlay-src", layer.source or layer.path, "--overlay", layer.changes, layer.work, layer.path)
    for path in profile.hidden:
        yield ("--tmpfs", path) if os.path.isdir(path) else ("--ro-bind", "/dev/null", path)
    for path in (*profile.readable, *profile.read_only):
        yield ("--ro-bind", path, path)


def _between(places: Sequence[str]) -> list[str]:
    """Return the folders of the session's /tmp in which something is mounted deeper down.

    They are mounts, too: a command that put a link in the place of one would choose where the next command has what is mounted there.
    """
    if "/tmp" in places:  # the project is that of the machine
        return []
    tops = dict.fromkeys("/".join(place.split("/", 3)[:3]) for place in places if place.startswith("/tmp/"))
    return [top for top in tops if top not in places]


def _limited(limits: CommandLimits) -> tuple[str, ...]:
    values = (("t", limits.cpu), ("v", limits.memory >> 10), ("f", limits.file_size >> 9))  # in the units of `ulimit`
    commands = [f"ulimit -{option} {value}" for option, value in values if value]
    if limits.processes:  # dash has another letter for it than other shells
        commands.append(f"{{ ulimit -u {limits.processes} 2>/dev/null || ulimit -p {limits.processes}; }}")
    if not commands:
        return ()
    return (SHELL, "-c", f'{" && ".join(["ulimit -c 0", *commands])} && exec "$@"', SHELL)
