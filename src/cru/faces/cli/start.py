"""The `cru` command, stage two: parse, hand over to a command, a chat or a one-shot run, and leave quickly."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from cru.faces.cli.flags import Parsed, UsageProblem, parse, usage

DONE, ERROR, USAGE, DENIED, HELD, NO_MODEL, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130


def start(argv: Sequence[str]) -> NoReturn:
    """Run a command line and leave with its exit status (docs/command-line.md)."""
    leave(_guarded(argv))


def leave(code: int) -> NoReturn:
    """Flush and go, without the interpreter's slow farewell: everything that matters is closed already."""
    try:
        sys.stdout.flush()
    except (BrokenPipeError, ValueError):
        pass  # the reader has gone; there is nobody to tell
    sys.stderr.flush()
    os._exit(code)


def _guarded(argv: Sequence[str]) -> int:
    try:
        return _run(argv)
    except UsageProblem as problem:
        complain(problem.message, problem.hint)
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        from cru.values.errors import CruError

        if isinstance(error, CruError):
            complain(error.message, error.hint)
            return error.code
        if isinstance(error, OSError):
            complain(f"{error.filename or 'input/output'}: {error.strerror or error}")
            return ERROR
        raise


def complain(message: str, hint: str = "") -> None:
    """One clear error on stderr, and the next step below it."""
    print(f"cru: {message}", file=sys.stderr)
    for line in hint.splitlines():
        print(f"  {line}", file=sys.stderr)


def _run(argv: Sequence[str]) -> int:
    parsed = parse(argv)
    if parsed.has("help"):
        print(usage())
        return DONE
    if parsed.has("version"):
        from cru import __version__

        print(f"cru {__version__}")
        return DONE
    command = _command(parsed)
    if command is not None:
        return command
    from cru.faces.cli.run import run

    return run(parsed)


def _command(parsed: Parsed) -> int | None:
    """A management command: its name is the first word, before it only --home, -c, -C and -v."""
    if parsed.literal or not parsed.words:
        return None
    from cru.faces.cli.commands import COMMANDS

    name = parsed.words[0]
    if name not in COMMANDS:
        return None
    from importlib import import_module

    from cru.faces.cli.flags import BEFORE_COMMANDS

    wrong = [flag for flag, _ in parsed.given if flag.name not in BEFORE_COMMANDS]
    if wrong:
        raise UsageProblem(f"{wrong[0].long} does not go with the command `{name}`", as_prompt(parsed.words))
    module = import_module(f"cru.faces.cli.{COMMANDS[name].module}")
    code: int = module.command(parsed, parsed.words[1:])
    return code


def as_prompt(words: Sequence[str]) -> str:
    """What to type if the words were meant for the model."""
    return f"did you mean: cru -- {' '.join(words)}"
