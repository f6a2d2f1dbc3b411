"""The `cru` command, stage two: parse, hand over to a command, a chat or a one-shot run, and leave quickly."""

from __future__ import annotations

import gc
import os
import sys

from cru.faces.cli.console import TerminalOutput, prepare, say
from cru.faces.cli.flags import Parsed, UsageProblem, parse, usage

TYPE_CHECKING = False  # see flags.py
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine, Sequence
    from typing import Any, NoReturn, TypeVar

    T = TypeVar("T")

DONE, ERROR, USAGE, DENIED, HELD, NO_MODEL, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130

SCRUBBED = ("CHIBI_HOOK", "CHIBI_TOOL", "CHIBI_VERBOSE", "CHIBI_CONTEXT")


class SignalInterrupt(Exception):
    """A signal ended what ran outside of a turn; `code` is the exit status that it asks for."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class StartFailure:
    """An expected end without success: what to tell, the next step, the exit status."""

    def __init__(self, message: str, hint: str, code: int) -> None:
        self.message, self.hint, self.code = message, hint, code


def run_and_exit(argv: Sequence[str]) -> NoReturn:
    """Run a command line and leave with its exit status (docs/command-line.md)."""
    prepare()
    _nest()
    leave(_guarded(argv))


def _nest() -> None:
    """CRU_DEPTH is how many runs of cru are above one another, this one included; its children inherit it. What a run above this one told
    one of its plugins is not for anybody here."""
    above = os.environ.get("CRU_DEPTH", "")
    os.environ["CRU_DEPTH"] = str(int(above) + 1 if above.isdecimal() and len(above) < 5 else 1)
    for name in [name for name in os.environ if name.startswith(SCRUBBED)]:
        del os.environ[name]


def loaded() -> None:
    """The start is over: what was loaded stays for good, and from now on garbage is collected again (main.py turned it off)."""
    gc.freeze()
    gc.enable()


def on_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run it to its end. What it left running gets a moment; threads get none, for the process ends without them."""
    import asyncio

    from cru.faces.cli.event_loop import Loop

    loop = Loop()
    asyncio.set_event_loop(loop)
    try:
        return _to_end(loop, work)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            _to_end(loop, asyncio.wait(left, timeout=0.3))


def unattended(work: Coroutine[Any, Any, T]) -> T:
    """`on_loop` for work that minds no signals: the first one cancels it. Raises Interrupted."""
    import asyncio

    from cru.faces.cli.signals import ENDS

    async def watched() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        came: list[int] = []

        def end(number: int) -> None:
            came.append(number)
            task.cancel()

        for number in ENDS:
            loop.add_signal_handler(number, end, number)
        try:
            return await work
        except asyncio.CancelledError:
            if not came:
                raise
            raise SignalInterrupt(128 + came[0]) from None

    return on_loop(watched())


def _to_end(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    """The loop lets SystemExit and KeyboardInterrupt out of any task at once. If it was a plugin's own, it is told and the loop goes on."""
    task = loop.create_task(work)
    while True:
        try:
            return loop.run_until_complete(task)
        except (SystemExit, KeyboardInterrupt) as raised:
            from cru.events.calling import from_outside

            if from_outside(raised) or (task.done() and not task.cancelled() and task.exception() is raised):
                raise
            loop.call_exception_handler({"message": "a task ends the program", "exception": raised})


def leave(code: int) -> NoReturn:
    """Flush and go, without the interpreter's slow farewell: everything that matters is closed already."""
    lost = TerminalOutput.lost
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        pass  # the reader has gone; there is nobody to tell
    except OSError as error:
        lost = error.strerror or str(error)
    if lost:
        complain(f"standard output: {lost}")
        code = code or ERROR
    os._exit(code)


def _guarded(argv: Sequence[str]) -> int:
    code, error, as_request = _attempt(argv)
    if as_request:
        from cru.faces.cli.json_mode.request import done

        done(code, error)
    return code


def _attempt(argv: Sequence[str]) -> tuple[int, BaseException | None, bool]:
    """The exit status; what was raised, which is told already; whether this was a request (--json-config)."""
    as_json, as_request = False, "--json-config" in argv
    try:
        parsed = parse(argv)
        as_request = parsed.has("json-config")
        as_json = parsed.has("json") or as_request
        return _run(parsed), None, as_request
    except BrokenPipeError:
        return DONE, None, as_request  # `cru -g 0 | head`: the reader has seen enough
    except KeyboardInterrupt as error:
        raised: BaseException = error
        failure: StartFailure | None = StartFailure("interrupted", "", INTERRUPTED)
    except Exception as error:
        raised, failure = error, _failure(error)
        if failure is None:
            raise
    assert failure is not None
    complain(failure.message, failure.hint)
    if as_json:
        from cru.faces.cli.json_mode.face import JsonFace

        JsonFace().failed(failure.message, failure.hint, failure.code)
    return failure.code, raised, as_request


def _failure(error: Exception) -> StartFailure | None:
    """What an exception means to a person; None if it is a defect."""
    if isinstance(error, UsageProblem):
        return StartFailure(error.message, error.hint, USAGE)
    if isinstance(error, SignalInterrupt):
        return StartFailure("interrupted", "", error.code)
    if isinstance(error, OSError):
        return StartFailure(f"{error.filename or 'input/output'}: {error.strerror or error}", "", ERROR)
    from cru.values.errors import CruError

    return StartFailure(error.message, error.hint, error.code) if isinstance(error, CruError) else None


def complain(message: str, hint: str = "") -> None:
    """One clear error on stderr, and the next step below it."""
    say("\n  ".join([f"cru: {message}", *hint.splitlines()]))


def _run(parsed: Parsed) -> int:
    if parsed.has("json-config"):
        import cru.values
        from cru.faces.cli.json_mode.request import request

        parsed = request(parsed)
    if parsed.has("help"):
        return _tell(parsed, usage())
    if parsed.has("version"):
        from cru import __version__

        return _tell(parsed, f"cru {__version__}")
    import cru.values  # noqa: F401  before any module loads msgspec: it keeps typing_extensions out

    command = _command(parsed)
    if command is not None:
        return command
    from cru.faces.cli.run import run

    return run(parsed)


def _tell(parsed: Parsed, text: str) -> int:
    if not parsed.has("json"):
        print(text)
        return DONE
    from cru.engine.turn import LegResult
    from cru.faces.cli.json_mode.face import JsonFace

    face = JsonFace()
    face.output(text)
    face.result(LegResult("done"), DONE)
    return DONE


def _command(parsed: Parsed) -> int | None:
    """A management command: its name is the first word, before it only --home, -c, -C and -v."""
    if parsed.literal or not parsed.words:
        return None
    from cru.faces.cli.commands import COMMANDS, meant

    name = parsed.words[0]
    if name not in COMMANDS:
        near = meant(parsed.words)
        if near:
            raise UsageProblem(f"there is no command {name}", or_prompt((near, *parsed.words[1:]), parsed.words))
        return None
    from importlib import import_module

    from cru.faces.cli.flags import refuse_before_command

    refuse_before_command(parsed)
    module = import_module(COMMANDS[name].module)
    loaded()
    code: int = module.command(parsed, parsed.words[1:])
    return code


def or_prompt(near: Sequence[str], words: Sequence[str]) -> str:
    """What was probably meant, and what to type if the words were meant for the model."""
    import shlex

    return f"did you mean: {shlex.join(('cru', *near))}\nas a prompt: {shlex.join(('cru', '--', *words))}"


def as_prompt(words: Sequence[str]) -> str:
    """What to type if the words were meant for the model."""
    import shlex

    return f"did you mean: cru -- {shlex.join(words)}"
