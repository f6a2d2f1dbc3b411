"""Ways out of the sandbox that were thought of: each is a command, judged by what it changed outside and by what it printed.

Placeholders: {out} a folder beside the project, {home} the person's, {cru} cru's own, {pid} a process of the person with a secret in its
environment, {port} a server on this machine, {abstract} a socket without a file, {socket} one with a file in /tmp. A way that leads out
prints SECRET.
"""

from __future__ import annotations

SECRET = "TOP-SECRET-9"

WRITES = [
    "echo x > {out}/new",
    "echo x >> {out}/kept",
    "cp /etc/hostname {out}/new",
    "mkdir {out}/folder",
    "ln -s {out} link && echo x > link/new",
    "ln {out}/kept hard && echo x >> hard",
    "mv {out}/kept kept",
    "mv {out} moved",
    "rm -f {out}/kept",
    "rm -rf {out}",
    "truncate -s 0 {out}/kept",
    "chmod 777 {out}/kept",
    "touch {out}/kept",
    "cd {out} && echo x > new",
    "cd / && echo x > {out}/new",
    "python3 -c \"open('{out}/new', 'w')\"",
    "python3 -c \"import os; os.rename('{out}/kept', '{out}/new')\"",
    "sed -i s/a/b/ {out}/kept",
    "tar cf {out}/new.tar .",
    "dd if=/dev/zero of={out}/new bs=1 count=1",
    "git init -q {out}/repo",
    "setfattr -n user.a -v b {out}/kept || python3 -c \"import os; os.setxattr('{out}/kept', 'user.a', b'b')\"",
    "echo x > {home}/.bashrc",
    "echo x >> {home}/.profile",
    "mkdir -p {home}/.config/systemd/user && echo x > {home}/.config/systemd/user/a.service",
    "echo x > {cru}/config.toml",
    "mkdir -p {cru}/plugins && echo x > {cru}/plugins/a.lua",
    "(sleep 0.3; echo x > {out}/new) & disown",
    "setsid -f sh -c 'sleep 0.3; echo x > {out}/new'",
    "nohup sh -c 'sleep 0.3; echo late > late' >/dev/null 2>&1 &",
]
"""What is outside of the project."""

GUARDS = [
    "echo x > .git/hooks/pre-commit",
    "ln -s /bin/sh .git/hooks/pre-commit",
    "git config core.hooksPath evil",
    "git config core.fsmonitor ./evil",
    "git config --worktree core.hooksPath evil",
    "printf '[core]\\n\\thooksPath = evil\\n' >> .git/config",
    "mv .git/config .git/old; mv .git/hooks .git/old-hooks",
    "mv .git gone; git init -q",
    "rm -rf .git/hooks .git/config",
    "ln .git/config hard-config && echo x >> hard-config",
    "echo ../evil > .git/commondir",
    "mount --bind /tmp .git/hooks; umount .git/hooks; echo x > .git/hooks/post-commit",
    "unshare -Urm sh -c 'umount .git/hooks; mount -o remount,rw,bind .git/config; echo x > .git/hooks/post-merge; echo x >> .git/config'",
    "mkdir .cru && echo x > .cru/config.toml",
    "echo x > .claude/settings.json",
    "mv .claude claude2 && mkdir .claude && echo x > .claude/settings.json",
    "rm -rf .claude",
    "mkdir .codex && echo x > .codex/config.toml",
    "mkdir .gemini && echo x > .gemini/settings.json",
    "echo x > crush.json",
    "echo x > .crush.json",
    "echo x > .envrc",
    "ln -s {out}/kept .mcp.json",
    "mkdir -p .vscode && echo x > .vscode/tasks.json",
    "mkdir -p .husky && echo x > .husky/pre-commit",
]
"""What decides what runs later."""

READS = [
    "cat {home}/.ssh/id_rsa",
    "cat {home}/.aws/credentials",
    "cat {home}/.netrc",
    "ls -la {home}/.ssh; find {home}/.ssh -type f -exec cat {} +",
    "cp {home}/.ssh/id_rsa stolen; cat stolen",
    "ln -s {home}/.ssh s; cat s/id_rsa",
    "tar c {home} 2>/dev/null | strings",
    "cat {cru}/keys.json",
    "grep -r . {cru}",
    "cat /proc/{pid}/environ | tr '\\0' '\\n'",
    "cat /proc/$PPID/environ | tr '\\0' '\\n'",
    "cat /proc/*/environ | tr '\\0' '\\n'",
    "cat /proc/{pid}/root{home}/.ssh/id_rsa /proc/1/root{home}/.ssh/id_rsa",
    "cat /proc/{pid}/cwd/../secrets-of-run; ls /proc/{pid}/fd",
    "unshare -Urm sh -c 'umount {home}/.ssh; cat {home}/.ssh/id_rsa'",
    "grep -q : /etc/shadow && echo TOP-SECRET-9",
]
"""What is hidden."""

POWERS = [
    "kill -9 {pid}",
    "kill -9 $PPID; kill -9 -1",
    "kill -9 0",
    'python3 -c "import os; os.kill({pid}, 9)"',
    "gdb -p {pid} -batch || strace -p {pid}",
    "python3 -c \"import ctypes; print('TOP-SECRET-9' if ctypes.CDLL(None).ptrace(16, {pid}, 0, 0) == 0 else 'refused')\"",
    "mount -t tmpfs none {out}",
    "umount -l /tmp {home}/.ssh",
    "cp /bin/sh sh && chmod u+s sh && ./sh -p -c 'echo x > {out}/new'",
    "su -c 'echo x > {out}/new' </dev/null || sudo -n sh -c 'echo x > {out}/new'",
    "chroot / sh -c 'echo x > {out}/new'",
    "mknod disk b 8 0 && echo TOP-SECRET-9",
    "echo x > /dev/shm/cru-escape-{pid}",
    "echo x > /tmp/cru-escape-{pid}",
    "echo x > /var/tmp/cru-escape-{pid}",
    "echo 1 > /proc/sys/kernel/sysrq && echo TOP-SECRET-9",
    "sysctl -w kernel.core_pattern='|/bin/false' && echo TOP-SECRET-9",
    "echo 0 > /proc/{pid}/oom_score_adj && echo TOP-SECRET-9",
    "nsenter -t {pid} -m sh -c 'echo x > {out}/new'",
    "hostname escaped && echo TOP-SECRET-9",
]
"""What reaches other processes and the machine."""

NETWORK = [
    "python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port}), 2).sendall(b'x')\"",
    "exec 3<>/dev/tcp/127.0.0.1/{port} && echo x >&3",
    "python3 -c \"import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'x', ('127.0.0.1', {port}))\"",
    "curl -s http://127.0.0.1:{port}/",
    "python3 -c \"import socket; s = socket.socket(socket.AF_UNIX); s.connect('\\0{abstract}'); s.sendall(b'x')\"",
    "python3 -c \"import socket; s = socket.socket(socket.AF_UNIX); s.connect('/run/docker.sock'); print('TOP-SECRET-9')\"",
    "python3 -c \"import socket; s = socket.socket(socket.AF_UNIX); s.connect('{socket}'); s.sendall(b'x')\"",
]
"""Sockets."""

ESCAPES = (*WRITES, *GUARDS, *READS, *POWERS, *NETWORK)
