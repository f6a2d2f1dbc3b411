"""The `cru` command, stage two: parse, hand over to a management command, a chat or a one-shot run, and leave quickly."""

from __future__ import annotations

import os
import sys

from cru.faces.cli.console import ExitStatus, complain, end_startup, leave, prepare_streams
from cru.faces.cli.flags import CHAT_FLAGS, Parsed, UsageProblem, parse

TYPE_CHECKING = False  # see flags.py
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

# What a run of cru above this one told one of its plugins is not for anybody here.
INHERITED = ("CHIBI_HOOK", "CHIBI_TOOL", "CHIBI_VERBOSE", "CHIBI_CONTEXT")

# Flags after which no chat opens.
NO_CHAT = ("no-llm", "resume", "json", "attach")


class Failure:
    """An expected end without success: what to tell, the next step, the exit status."""

    def __init__(self, message: str, hint: str, code: int) -> None:
        self.message, self.hint, self.code = message, hint, code


def run_and_exit(argv: Sequence[str]) -> NoReturn:
    """Run a command line and leave with its exit status (docs/command-line.md)."""
    prepare_streams()
    _count_depth()
    for name in [name for name in os.environ if name.startswith(INHERITED)]:
        del os.environ[name]
    if "CRU_END_WITH" in os.environ:
        from cru.faces.cli.end_with import end_with_parent

        end_with_parent()
    leave(_run_guarded(argv))


def _count_depth() -> None:
    """CRU_DEPTH is how many runs of cru are above one another, this one included; its children inherit it."""
    above = os.environ.get("CRU_DEPTH", "")
    os.environ["CRU_DEPTH"] = str(int(above) + 1 if above.isdecimal() and len(above) < 5 else 1)


def _run_guarded(argv: Sequence[str]) -> int:
    """The exit status of a command line. An expected error is reported here, a defect is raised."""
    as_json = as_request = False
    error: BaseException | None = None
    try:
        as_request = "--json-config" in argv
        parsed = parse(argv)
        if any([word.startswith("--") for word in parsed.words]):
            from cru.faces.cli.flag_places import take_options

            parsed = take_options(parsed)
        as_request = parsed.has("json-config")
        as_json = parsed.has("json") or as_request
        code = _run(parsed)
    except BrokenPipeError:
        code = ExitStatus.DONE  # `cru -g 0 | head`: the reader has seen enough
    except (KeyboardInterrupt, Exception) as raised:
        error, failure = raised, _failure(raised)
        if failure is None:
            raise
        code = _report(failure, as_json)
    if as_request:
        from cru.faces.cli.json_mode.face import report_outcome

        report_outcome(code, error)
    return code


def _failure(error: BaseException) -> Failure | None:
    """What an exception means to a person; None if it is a defect."""
    if isinstance(error, KeyboardInterrupt):
        return Failure("interrupted", "", ExitStatus.INTERRUPTED)
    if isinstance(error, UsageProblem):
        return Failure(error.message, error.hint, ExitStatus.USAGE)
    if isinstance(error, OSError):
        return Failure(f"{error.filename or 'input/output'}: {error.strerror or error}", "", ExitStatus.ERROR)
    if isinstance(error, MemoryError):
        error.__traceback__ = None  # what the run held is free again
        return Failure(
            "there is not enough memory", "a shorter conversation, or smaller files, need less", ExitStatus.ERROR
        )
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        return Failure(
            "the system starts no more threads", "`ulimit -u` and `ulimit -v` say what it allows", ExitStatus.ERROR
        )
    from cru.core.base.values.errors import CruError

    if isinstance(error, ModuleNotFoundError):
        from cru.core.command_table import missing_feature

        error = missing_feature(error) or error
    return Failure(error.message, error.hint, error.code) if isinstance(error, CruError) else None


def _report(failure: Failure, as_json: bool) -> int:
    if "`/" in failure.hint:
        from cru.faces.cli.continuation import spell_outside_chat

        failure.hint = spell_outside_chat(failure.hint)
    complain(failure.message, failure.hint)
    if as_json:
        from cru.faces.cli.json_mode.face import JsonFace

        JsonFace().failed(failure.message, failure.hint, failure.code)
    return failure.code


def _run(parsed: Parsed) -> int:
    if parsed.has("json-config"):
        import cru.core.base.values  # noqa: F401  see _run_loaded
        from cru.faces.cli.json_mode.request import read_request

        parsed = read_request(parsed)
    if parsed.has("help"):
        from cru.faces.cli.help_text import help_beside

        return help_beside(parsed, _print)
    if parsed.has("version"):
        from cru import __version__

        return _print(parsed, f"cru {__version__}")
    if parsed.words and not parsed.literal:
        from cru.core.command_table import COMMANDS

        if parsed.words[0] in COMMANDS:
            from cru.faces.cli.flag_places import expand_command

            expand_command(parsed)
    from cru.faces.cli.deferred_modules import defer_modules

    defer_modules()
    if _is_chat(parsed):
        from cru.faces.cli.chat.first_prompt import hide_typing

        with hide_typing():
            return _run_loaded(parsed)
    return _run_loaded(parsed)


def _is_chat(parsed: Parsed) -> bool:
    """Whether this run is sure to open a chat, so that nothing before it asks on the terminal."""
    return (
        not parsed.words
        and not any(parsed.has(name) for name in NO_CHAT)
        and all(flag.short in CHAT_FLAGS for flag, _ in parsed.operations())
        and _is_typed()
        and sys.stderr.isatty()
    )


def _run_loaded(parsed: Parsed) -> int:
    import cru.core.base.values  # noqa: F401  before any module loads msgspec: it keeps typing_extensions out

    code = _run_command(parsed)
    if code is not None:
        return code
    from cru.faces.cli.run import run

    return run(parsed)


def _print(parsed: Parsed, text: str) -> int:
    if not parsed.has("json"):
        print(text)
        return ExitStatus.DONE
    from cru.core.turn.turn import LegResult
    from cru.faces.cli.json_mode.face import JsonFace

    face = JsonFace()
    face.output(text)
    face.result(LegResult("done"), ExitStatus.DONE)
    return ExitStatus.DONE


def _is_typed() -> bool:
    """Whether somebody sits at a terminal, and no script asks."""
    return sys.stdin is not None and sys.stdin.isatty()


def _run_command(parsed: Parsed) -> int | None:
    """Run a command of the shell, whose name is the first word. Return its exit status; None: it is none."""
    words = parsed.words
    if parsed.literal or not words:
        return None
    from cru.core.command_table import COMMANDS

    row = COMMANDS.get(words[0])
    if row is None:
        if (
            "exec" in words or any([words[1] in known.verbs for known in COMMANDS.values()])
            if words[1:]
            else _is_typed()
        ):
            from cru.faces.cli.flag_places import refuse_misprint

            refuse_misprint(words)
    elif row.named:
        from cru.faces.cli.flag_places import run_named

        return run_named(parsed)
    elif row.shell:
        if parsed.flags:
            from cru.faces.cli.flag_places import refuse_before_command

            refuse_before_command(parsed)
        end_startup()
        return row.run(parsed, words[1:])
    return None
