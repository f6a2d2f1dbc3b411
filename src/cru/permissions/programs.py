"""What is known of programs by name: which ones run other commands, and whose second word says what they do."""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words that begin something that is not a simple command.
KEYWORDS = _names("if then else elif fi for while until do done case esac in function select time coproc { } ! [[ ]]")

# Commands whose arguments are commands, or that change what later words mean.
WRAPPERS = _names(
    ". alias builtin busybox chroot command coproc doas enable env eval exec flock hash ionice nice nohup nsenter parallel "
    "pkexec runuser script setpriv setsid source ssh stdbuf su sudo systemd-run timeout trap unalias unshare watch xargs"
)
SHELLS = _names("sh bash dash zsh ksh mksh fish ash csh tcsh pwsh powershell cmd")

# Options that make a program run other commands.
RUNS_COMMANDS = {
    "find": _names("-exec -execdir -ok -okdir"),
    "fd": _names("-x -X --exec --exec-batch"),
}

# Programs that run code from their arguments: an allow rule may name them, a deny rule looks into their words.
INTERPRETERS = _names("python python3 perl ruby node php lua awk gawk mawk osascript deno bun make ed vim tclsh ")

# Programs of which an answer may allow "PROGRAM WORD *".
SUBCOMMANDS = {
    "cargo": _names("bench build check clippy doc fmt test tree"),
    "git": _names("add blame branch commit diff log ls-files show stash status"),
    "go": _names("build fmt list test vet"),
    "npm": _names("ls outdated test"),
    "pip": _names("check freeze list show"),
    "uv": _names("lock sync tree"),
}
