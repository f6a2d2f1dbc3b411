"""Which words of a command may begin another command, as far as what is known of programs says. Deny and ask rules look there."""

from __future__ import annotations

from cru.shell.harmless import TABLES
from cru.shell.program_names import CODE_PROGRAMS, TABLED_PROGRAMS
from cru.shell.programs import (
    INTERPRETERS,
    KEYWORDS,
    PLAIN_PROGRAMS,
    RUNNING_WORDS,
    SHELLS,
    SUBCOMMAND_PROGRAMS,
    WRAPPERS,
    base_name,
    is_listed,
    names,
)

_OTHER_DATA_PROGRAMS = names(
    "apk apt apt-cache apt-get b2sum bc bg brew cal chattr cksum clear cmake cowsay dd dig disown dpkg dnf espeak expr fallocate "
    "ffmpeg ffprobe fg figlet flake8 flatpak getent getfacl gem gsutil host isort jobs kill killall last lsattr lsof magick mkfifo "
    "mknod mkfs mount nmcli ninja-build nslookup objdump open pacman pbcopy ping pkill port prettier pyright readelf rclone rustc rustfmt "
    "say setfacl shred snap ss strip sum svn sync traceroute tsc tput type umount wait who xclip xdg-open xsel yum zypper"
)
"""Programs without a table of options that run none of their operands."""
_RUNNING_SUBCOMMANDS = RUNNING_WORDS | names("debug ssh watch")
_GROUPS = names("builder codespace compose compute container cs tool")
"""Subcommands with subcommands, one of which runs a command."""
_WITH_TARGETS = names("aws docker gcloud gh kubectl podman")
"""Programs that run a command somewhere else, which they name first."""
_WITH_SCRIPTS = names("npm pnpm yarn")
"""Programs of which `run` names a script of the project first."""
_RUNNING = WRAPPERS | SHELLS | CODE_PROGRAMS
DATA_PROGRAMS = (PLAIN_PROGRAMS | _OTHER_DATA_PROGRAMS | TABLED_PROGRAMS) - _RUNNING


def find_inner_commands(words: tuple[str, ...]) -> tuple[int, ...]:
    """Return the places of words that may begin a command that the first word's program runs.

    Behind a program that treats its operands as data there are none, and of one with subcommands only those behind a word such as `run`.
    Of any other program each word counts, unless the first operand is itself a program of one of these two kinds.
    """
    places: list[int] = []
    program = 0
    while True:
        start = _first_operand(words, program)
        inner = start
        while inner < len(words) and _is_no_command(words[inner]):
            inner += 1
        if inner == len(words) or not _says_what_its_words_are(words[inner]) or _names_target(words[program]):
            return (*places, *range(start, len(words)))
        places += range(start, inner + 1)  # an option with its value may hold a command, too
        program = inner


def find_line_commands(words: tuple[str, ...]) -> tuple[int, ...]:
    """Return the same places for a text that may be a command line, or prose: what its program does with its words must be known."""
    first = next((at for at, word in enumerate(words) if not _begins_command(word)), len(words) - 1)
    name = base_name(words[first])
    is_known = name != words[first] or name in _RUNNING or is_listed(name, SUBCOMMAND_PROGRAMS | INTERPRETERS)
    inner = find_inner_commands(words[first:]) if is_known else ()
    return (*range(first + 1), *(first + at for at in inner))


def _begins_command(word: str) -> bool:
    return word in KEYWORDS or (word.partition("=")[0].isidentifier() and "=" in word)


def _first_operand(words: tuple[str, ...], program: int) -> int:
    """Return the first place behind the program where a command may stand, the count of words if there is none."""
    name = base_name(words[program])
    if name == "git":
        is_known = any(word.startswith("-") or f"git {word}" in TABLES for word in words[program + 1 : program + 2])
        return len(words) if is_known else min(program + 2, len(words))  # `git x` may be a program or an alias
    if is_listed(name, SUBCOMMAND_PROGRAMS):
        start = _behind_subcommand(words, program + 1)
        names_script = name in _WITH_SCRIPTS and words[start - 1] == "run"
        return min(start + names_script, len(words))
    return len(words) if is_listed(name, DATA_PROGRAMS) else program + 1


def _behind_subcommand(words: tuple[str, ...], first: int) -> int:
    """Return the place behind a subcommand that runs a command; which options before it take a value is not known."""
    for at in range(first, len(words)):
        if words[at] in _RUNNING_SUBCOMMANDS:
            return at + 1
        is_option = words[at].startswith("-") or (at > first and words[at - 1].startswith("-"))
        if not is_option and words[at] not in _GROUPS:
            break
    return len(words)


def _is_no_command(word: str) -> bool:
    """Return whether the word is an option with its value, or `--`: behind an option of its own a value may stand."""
    return word == "--" or ("=" in word and " " not in word)


def _says_what_its_words_are(word: str) -> bool:
    return is_listed(base_name(word), SUBCOMMAND_PROGRAMS | DATA_PROGRAMS)


def _names_target(word: str) -> bool:
    """Return whether the first operand may be a container or a host, whatever it is called."""
    return is_listed(base_name(word), _WITH_TARGETS)
