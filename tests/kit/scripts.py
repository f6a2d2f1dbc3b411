"""Scripts that tests write, and words of commands, wherever the checkout lies."""

from __future__ import annotations

import shlex
import sys

from tests.kit.run import program


def shebang(options: str = "") -> str:
    """Return the first lines of a script for the interpreter of the tests, as pip writes them.

    The kernel takes what follows a space in a `#!` line for an argument. A shell, which reads quotes, finds the interpreter of a checkout
    whose path has one.
    """
    if not any(character.isspace() for character in sys.executable):
        return f"#!{sys.executable} {options}".rstrip() + "\n"
    return f"#!/bin/sh\n'''exec' \"{sys.executable}\" {options} \"$0\" \"$@\"\n' '''\n"


def cru_word() -> str:
    """Return the `cru` under test as a word of a shell command."""
    return shlex.quote(str(program()))


def python_word() -> str:
    """Return the interpreter of the tests as a word of a shell command."""
    return shlex.quote(sys.executable)
