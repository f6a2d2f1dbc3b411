"""One run of the command: its flags in the order of the flag table, then the prompt, then the farewell."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from msgspec import Struct

from cru.core.conversations.home import Home, private_parents
from cru.core.models.providers import KEY_VARIABLES
from cru.faces.cli.console import ExitStatus, await_input, say
from cru.faces.cli.flags import CHAT_FLAGS, RUN_OPTION_FLAGS, Parsed, UsageProblem, flag_behind
from cru.faces.cli.run_options import (
    config_text,
    context_name,
    home_path,
    open_home,
    overrides,
    require_utf8,
    start_of,
    working_directory,
)

if TYPE_CHECKING:
    from pathlib import Path

    from cru.core.compose.start import Start
    from cru.core.events.payloads import Attachment

# Of those after which the model is not asked, the ones that open the run's own context.
CURRENT_FLAGS = ("-l", "-d", "-g", "-n", "-p", "-P")
LOCAL_MODELS = (b"scripted:", b"local:", b"ollama:", b"lmstudio:", b"llamacpp:", b"vllm:")


class FlagResults(Struct, frozen=True):
    """What the flags leave for the rest of the run.

    name: the context
    events: what handlers are to hear of
    code: the exit status of turns that flags ran
    texts: what calls of tools gave, for the model
    """

    name: str
    events: tuple[Struct, ...] = ()
    code: int = ExitStatus.DONE
    texts: tuple[str, ...] = ()


def run(parsed: Parsed) -> int:
    """Everything that is no management command; returns the exit status."""
    if parsed.has("no-session"):
        from cru.faces.cli.no_session import run_private

        return run_private(parsed, _run)
    return _run(parsed)


def _run(parsed: Parsed) -> int:
    quiet = _is_quiet(parsed)
    _check(parsed)
    home = open_home(parsed)
    if not quiet and _expects_tls(home_path(parsed)):
        from cru.core.base.net.seeding import start_seeding

        start_seeding()
    if quiet and parsed.words:
        say(f"cru: the prompt is not sent ({_silencer(parsed)})")
    text, warning = ("", "") if quiet or parsed.has("resume") else read_prompt(parsed)
    typed = _decode(os.fsencode(" ".join(parsed.words)), "")[0].strip() or text
    name = _claimed_name(parsed, home)
    _clear_away(parsed, home, name)
    results = _carry_out(parsed, home, name)
    if warning:
        say(f"cru: {warning}")
    if behind := flag_behind(parsed):
        say(f"cru: {behind} stands behind the first word of the prompt and is part of it; flags come first")
    if results.texts:
        text = "\n\n".join([*results.texts, text]).strip()
    if not quiet:
        _tell_origin(parsed, home, results.name)
    if not quiet and (text.strip() or parsed.has("resume")):
        return max(results.code, _turn(parsed, text, typed, results))
    # No session follows, so there is no other context.
    if events := tuple(event for event in results.events if not getattr(event, "transient", False)):
        from cru.faces.cli.session_run import announce

        announce(start_of(parsed, results.name), parsed, events)
    options = CHAT_FLAGS if can_chat(parsed) else RUN_OPTION_FLAGS
    if quiet or any(flag.short not in options for flag, _ in parsed.operations()):
        return _farewell(parsed, results.code)
    return _chat(parsed, results.name)


def _claimed_name(parsed: Parsed, home: Home) -> str:
    """The context of this run. If it is the current one of a project that has none yet, it is given its name now."""
    name = context_name(parsed, home)
    if not home.is_new or name != home.current or not _concerns_current(parsed):
        return name
    from cru.core.conversations import StoreUnwritable

    try:
        if sentence := home.claim():
            say(f"cru: {sentence}")
    except StoreUnwritable:
        pass  # what needs the home is told of it
    return home.current


def _tell_origin(parsed: Parsed, home: Home, name: str) -> None:
    """A conversation that began in another project goes on here, which a person is to know: who has just chosen it, or sits there."""
    if not (parsed.has("switch-context") or parsed.has("transient-context") or sys.stderr.isatty()):
        return
    if origin := home.foreign_origin(name):
        say(f"cru: {name} began in another project, {origin}")


def _concerns_current(parsed: Parsed) -> bool:
    """Whether the run works on its context, and does not merely look at all or at others."""
    if not _is_quiet(parsed):
        return True
    return any(flag.short in CURRENT_FLAGS for flag, _ in parsed.operations())


def _expects_tls(home: Path) -> bool:
    """Whether the model is asked over https: a guess from the text of the settings, before anything that reads them is loaded. A wrong one
    costs only time."""
    text = config_text(home)
    if b"base_url" in text:
        return b"https://" in text
    has_key = any(name in os.environ for name in KEY_VARIABLES) or os.path.exists(home / "keys.json")
    return has_key and not any(word in text for word in LOCAL_MODELS)


def read_prompt(parsed: Parsed) -> tuple[str, str]:
    """The prompt and a warning ("" = none): words of the command line, blank line, piped text (chibi 0.4, section 1.4 of its contract;
    newlines are kept). A terminal on stdin adds nothing. With --commands piped text alone may be a command."""
    typed, warning = _decode(os.fsencode(" ".join(parsed.words)), "the prompt")
    if _stdin_is_terminal() or (typed[:1] == "/" and not parsed.literal and _is_own_command(typed)):
        return typed, warning
    if typed.strip():
        await_input("more of the prompt", "without any: cru … < /dev/null")
    else:
        await_input("the prompt", 'or give it as an argument: cru "PROMPT" < /dev/null')
    piped, piped_warning = _decode(_read_stdin(), "standard input")
    warning = warning or piped_warning
    if not typed.strip() and piped.lstrip().startswith("/") and not (parsed.has("commands") and piped.startswith("/")):
        return f" {piped.strip()}", warning  # a space before a slash: no command
    return "\n\n".join(part for part in (typed, piped.strip()) if part.strip()), warning


def _is_own_command(text: str) -> bool:
    """Whether a command of cru begins the text. Piped text is not an argument of it (`… | cru undo`): anyone may have written that."""
    from cru.core.command_table import COMMANDS

    return text[1:].partition(" ")[0] in COMMANDS


def _stdin_is_terminal() -> bool:
    try:
        return os.isatty(0)
    except OSError:
        return True


def _read_stdin() -> bytes:
    try:
        return sys.stdin.buffer.read() if sys.stdin is not None else b""
    except (OSError, ValueError):
        return b""  # standard input is closed: there is nothing to read


def _decode(data: bytes, what: str) -> tuple[str, str]:
    try:
        return data.decode(), ""
    except UnicodeDecodeError as error:
        text = data.decode("utf-8", "backslashreplace")
        return text, f"{what} is not UTF-8 (first at byte {error.start}); such bytes are sent as \\xNN"


def _is_quiet(parsed: Parsed) -> bool:
    """Whether the model is not called."""
    if parsed.has("force-llm"):
        return False
    return parsed.has("no-llm") or any(flag.quiet for flag, _ in parsed.operations())


def _silencer(parsed: Parsed) -> str:
    """The first flag because of which the model is not called."""
    return next(flag.short or flag.long for flag, _ in parsed.flags if flag.quiet or flag.name == "no-llm")


def _check(parsed: Parsed) -> None:
    """What does not go together. Raises UsageProblem."""
    if parsed.has("set"):
        overrides(parsed)
    name = parsed.last("switch-context") or ""
    if any(map(str.isspace, name)):  # other agents have `-c PROMPT`
        hint = f"a prompt goes on with the project's conversation by itself: cru {name!r}"
        raise UsageProblem(f"not a name for a context: {name!r}", hint)
    if parsed.has("resume") and (parsed.words or parsed.has("plugin") or parsed.has("call-tool")):
        raise UsageProblem(
            "--resume takes no prompt", "run `cru --resume`, then ask; `cru resume NAME` continues another conversation"
        )
    if parsed.has("resume") and parsed.has("idempotency-key"):
        raise UsageProblem("--resume takes no --idempotency-key", "give the prompt again with its key: it goes on")
    if parsed.has("idempotency-key") and not parsed.last("idempotency-key"):
        raise UsageProblem("--idempotency-key needs a text", "any that names this prompt alone")
    if parsed.has("resume") and parsed.has("attach"):
        raise UsageProblem("--resume takes no --attach", "run `cru --resume`, then ask with the file")


def _clear_away(parsed: Parsed, home: Home, name: str) -> None:
    """What a kill left goes: of a removed context, and of runs that keep nothing; and contexts that were to destroy themselves by now, but
    for those that this run has to do with."""
    home.clear_remains()
    for parent in filter(os.path.lexists, private_parents(os.environ)):
        from cru.core.conversations.private import sweep

        sweep(parent)
    _settle_sandbox(parsed)
    sentences = home.failed_removals
    if home.expiring:
        from cru.core.conversations.expiry import destroy_due

        kept = {name, *(value for _, values in parsed.flags for value in values)}
        if "-" in kept and home.previous:
            kept.add(home.previous)
        sentences = destroy_due(home, kept)
    for text in sentences:
        say(f"cru: {text}")


def _settle_sandbox(parsed: Parsed) -> None:
    """What confined commands have made that must not be there, of runs that were killed and of what outlived its session."""
    if os.path.lexists(home_path(parsed) / "sandbox"):
        from cru.core.base.process.confined import describe_put_aside
        from cru.core.guard.sandbox.guard_records import settle_records

        if moved := settle_records(home_path(parsed)):
            say(f"cru: {describe_put_aside(moved)}: look at them, and remove them or rename what you want to have")


def _carry_out(parsed: Parsed, home: Home, name: str) -> FlagResults:
    operations = parsed.operations()
    if not operations:
        return FlagResults(name)
    from cru.faces.cli.operations.flag_run import FlagRun

    flags = FlagRun(parsed, home, name)
    flags.carry_out(operations)
    return FlagResults(flags.name, tuple(flags.events), flags.code, tuple(flags.results))


def _farewell(parsed: Parsed, code: int) -> int:
    """Something was done, and nothing is to be asked."""
    if parsed.has("json"):
        from cru.core.turn.turn import LegResult
        from cru.faces.cli.json_mode.face import JsonFace

        JsonFace().result(LegResult("error" if code else "done", code=code), code)
    return code


def can_chat(parsed: Parsed) -> bool:
    """Whether a run that has nothing to ask opens a chat."""
    return sys.stdin.isatty() and sys.stderr.isatty() and not parsed.has("json") and not parsed.has("attach")


def _chat(parsed: Parsed, name: str) -> int:
    """Nothing to ask: a chat on a terminal, else an error. The chat's prompt stands on stderr, so stdout may be a pipe."""
    if can_chat(parsed):
        from cru.faces.cli.chat.first_prompt import FirstPrompt

        while True:
            with FirstPrompt(name, is_kept=not parsed.private) as first:
                from cru.faces.cli.chat.chat import chat

                code, flag = chat(start_of(parsed, name), parsed, first)
            if flag is None:
                return code
            from cru.faces.cli.chat.reopening import reopened

            name = reopened(parsed, name, *flag)
    raise UsageProblem("there is no prompt", 'cru "your question", or pipe text into it')


def _turn(parsed: Parsed, text: str, typed: str, results: FlagResults) -> int:
    """Ask. The output of a tool is never a command and names no image; nothing after -- is a command. Piped text beside
    words is material: only the words name images."""
    from cru.faces.cli.session_run import PromptRequest, one_shot

    literal = parsed.literal or bool(results.texts)
    request = PromptRequest(
        text,
        _attachments(parsed),
        results.events,
        literal=literal,
        key=parsed.last("idempotency-key") or "",
        typed=typed,
    )
    return one_shot(_start_of_turn(parsed, results.name), parsed, request)


def _start_of_turn(parsed: Parsed, name: str) -> Start:
    """What is resumed goes on under the agent card that it was asked under, unless the command line names one."""
    start = start_of(parsed, name)
    if not parsed.has("resume") or start.agent:
        return start
    from msgspec.structs import replace

    from cru.core.compose.main_card import resumed_card
    from cru.core.compose.start import card_places

    return replace(start, agent=resumed_card(start.home / "contexts" / name, card_places(start)))


def _attachments(parsed: Parsed) -> tuple[Attachment, ...]:
    names = parsed.all("attach")
    if not names:
        return ()
    from cru.core.turn.attachments import read_attachment

    return tuple(read_attachment(require_utf8(name), working_directory()) for name in names)
