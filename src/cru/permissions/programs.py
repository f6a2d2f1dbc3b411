"""What is known of programs by name: which ones run other commands, and whose second word says what they do."""

from __future__ import annotations


def names(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


# Words that begin something that is not a simple command.
KEYWORDS = names("if then else elif fi for while until do done case esac in function select time coproc { } ! [[ ]]")

# Commands whose arguments are commands, or that change what later words mean.
WRAPPERS = names(
    ". alias at batch bind builtin busybox bwrap capsh cgexec chroot chrt command compgen complete coproc daemonize "
    "dbus-run-session doas enable entr env eval exec expect faketime fakeroot fc firejail flock hash i386 ionice jobs linux32 "
    "linux64 logsave ltrace machinectl nice nohup nsenter numactl parallel pkexec prlimit proot rlwrap rsh run0 runuser "
    "screen script setarch setpriv setsid sg shopt source ssh start-stop-daemon stdbuf strace su sudo systemd-inhibit "
    "systemd-run taskset time timeout tmux trap unalias unbuffer unshare valgrind watch x86_64 xargs xvfb-run"
)
SHELLS = names("sh bash rbash dash zsh ksh mksh yash fish ash csh tcsh nu xonsh pwsh powershell cmd")

# Builtins that set variables or take names of them: `a[$(rm x)]` is such a name, and the shell runs what stands in it.
SETTERS = names("declare export getopts let local mapfile read readarray readonly set typeset unset wait")

# Builtins that take such names with these options only.
NAMING = {"printf": ("-v",), "test": ("-v", "-R"), "[": ("-v", "-R")}

# Options that make a program run other commands. A letter counts inside a group of letters too.
RUNS_COMMANDS = {
    "find": names("-exec -execdir -ok -okdir"),
    "fd": names("-x -X --exec --exec-batch"),
    "git": names("--exec --extcmd --open-files-in-pager --receive-pack --tool --upload-pack"),
    "go": names("-exec -toolexec -vettool"),
    "man": names("-P -H --pager --html"),
    "rg": names("--pre --hostname-bin"),
    "rsync": names("-e --rsh --rsync-path"),
    "sort": names("--compress-program"),
    "split": names("--filter"),
    "tar": names(
        "-F -I --checkpoint-action --info-script --new-volume-script --rmt-command --rsh-command --to-command "
        "--use-compress-program"
    ),
}

# Programs that run code from their arguments: an allow rule may name them, a deny rule looks into their words. A version
# behind the name changes nothing (`python3.11`).
INTERPRETERS = names(
    "python pypy ipython perl ruby node nodejs php lua luajit awk gawk mawk nawk osascript deno bun make gmake ninja ed vi vim "
    "nvim ex emacs sed gsed tclsh wish m4 gdb sqlite npx bunx uvx pipx poetry conda man tar bsdtar rsync split sort rg zip"
)

# Programs whose own options may stand between their name and the word that says what they do.
SUBCOMMANDED = names("git docker podman kubectl helm npm pnpm yarn cargo pip uv go gh aws gcloud terraform systemctl")

# Programs of which an answer may allow "PROGRAM WORD *": none of these words takes an option that names a file to write or a
# program to run.
SUBCOMMANDS = {
    "git": names("add branch commit ls-files status"),
    "go": names("fmt"),
}
