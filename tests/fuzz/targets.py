"""Readers of what strangers write, each as a function of bytes: whatever it gets, it raises nothing but its room's own errors, gives the
same for the same text, and takes a time that is proportional to its length.

`python -m tests.fuzz TARGET` looks for bytes that break this (tests/fuzz/__main__.py); test_targets.py plays the seeds and what was found.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct
from tests.core.events.world import example
from tests.core.guard.rules.test_commands import gate
from tests.core.guard.shell.test_parser import check_places
from tests.core.hooks.dialect_world import about, event

from cru.core.base.config.ignored import restrict_untrusted
from cru.core.base.config.layers import ConfigError, Layer, merge_layers
from cru.core.base.files import parse_toml
from cru.core.base.files.front_matter import BadFrontMatter, read_front_matter
from cru.core.base.files.glob import BadGlob
from cru.core.base.files.nesting import BadToml
from cru.core.compose.start import SETTINGS
from cru.core.conversations.entries import decode_lines, encode, replace_surrogates
from cru.core.events.answers import STRENGTH, strength
from cru.core.events.catalog import BY_NAME
from cru.core.events.stamp import Event
from cru.core.guard import BadRule
from cru.core.guard.rules.command_parts import judge_parts
from cru.core.guard.rules.rules import parse_rule
from cru.core.guard.shell.analysis import analyze
from cru.core.guard.shell.parser import parse
from cru.core.guard.shell.simplify import simplify
from cru.core.hooks.dialects import load_dialects
from cru.core.hooks.model.entry import HookEntry, HookSource
from cru.core.hooks.model.mapping import AnswerReader
from cru.core.hooks.model.result import HookResult, HookRun
from cru.core.hooks.run.repeated_keys import read_every_value
from cru.core.models.anthropic import AnthropicReply
from cru.core.models.exchange import ReplyReader, SseDecoder
from cru.core.models.failures import RequestFacts
from cru.core.models.openai_compatible import OpenAIReply
from cru.core.models.protocol import ModelError
from cru.features.vault.parse import parse_note

FACTS = RequestFacts("mock", "mock")
PLACE = Path("/project/.cru/config.toml")
BASH = shutil.which("bash") or ""
WITHOUT_BASH = re.compile(r"[\0\r]|\\$|[^\x00-\x7f]")
"""Texts that cannot be given to bash, or that it reads by the locale."""

Target: TypeAlias = Callable[[bytes], None]


def read_events(data: bytes) -> None:
    """The stream of a model: the same events however it is cut; replies of both languages."""
    size, body = (data[0] % 7 + 1 if data else 1), data[1:]
    whole = _decode([body])
    assert whole == _decode([body[at : at + size] for at in range(0, len(body), size)])
    for reader in (OpenAIReply(FACTS), AnthropicReply(FACTS)):
        with suppress(ModelError):
            _read_reply(reader, whole)
    with suppress(ModelError):
        OpenAIReply(FACTS).whole(body)
    with suppress(ModelError):
        AnthropicReply(FACTS).whole(body)


def _decode(chunks: list[bytes]) -> list[bytes]:
    decoder = SseDecoder()
    return [data for chunk in chunks for data in decoder.feed(chunk)] + decoder.end()


def _read_reply(reader: ReplyReader, events: list[bytes]) -> None:
    for data in events:
        reader.read(data)
        if reader.done:
            break
    reader.end()


def read_shell(data: bytes) -> None:
    """Shell source: every place of the tree is right, judging it raises nothing, and bash takes what is read to its end."""
    text = data.decode("utf-8", "replace")
    parsed = parse(text)
    check_places(text, parsed.script)
    analyze(text)
    if simplified := simplify(text, "/project"):
        assert parsed.problem is None
        analyze(simplified)
    if parsed.problem is None and BASH and len(data) % 8 == 0 and not WITHOUT_BASH.search(text):
        done = subprocess.run([BASH, "-n", "-c", "--", text], capture_output=True, text=True, timeout=10)
        assert done.returncode == 0, done.stderr


def judge_command(data: bytes) -> None:
    """A rule and a command: the judge decides, and a rule that denies everything denies this."""
    rule, _, command = data.decode("utf-8", "replace").partition("\n")
    with suppress(BadRule, BadGlob):
        parse_rule(rule)
        for judge in (gate(allow=(rule,)), gate(deny=(rule,)), gate(allow=("*",), deny=("bash",))):
            judge_parts(judge, "bash", command)
            verdict = judge.judge("bash", "shell", command)
        assert verdict.decision == "deny", "a rule on the tool holds for every command"


class HookAnswers(Struct, frozen=True):
    """What reads the answers to one event of a dialect."""

    name: str
    entry: HookEntry
    event: Event
    read: AnswerReader


@cache
def _hook_answers() -> tuple[HookAnswers, ...]:
    return tuple(_each_hook())


def _each_hook() -> Iterator[HookAnswers]:
    for dialect in load_dialects().values():
        for name, mappings in dialect.events.items():
            for mapping in mappings:
                if mapping.answer is not None and mapping.event:
                    source = HookSource(dialect.name, "user", Path("/user/x"), "")
                    entry = HookEntry(id="x", dialect=dialect.name, event=name, source=source, line=1, name="guard")
                    at = event(example(BY_NAME[mapping.event]))
                    yield HookAnswers(f"{dialect.name} {name}", entry, at, mapping.answer)


def read_hook_output(data: bytes) -> None:
    """What a hook of any dialect and event printed: an answer, and one that refuses is not lost to a key that stands twice."""
    hooks = _hook_answers()
    number, status = (data[0] if data else 0), (data[1] if len(data) > 1 else 0)
    hook = hooks[number % len(hooks)]
    out, _, err = data[2:].partition(b"\0")
    run = HookRun((0, 0, 0, 1, 2, 49)[status % 6], out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))

    def read(run: HookRun) -> HookResult:
        return hook.read(hook.entry, hook.event, run, about())

    first, every = read(run), read_every_value(run, read)
    assert strength(every.answer) >= min(strength(first.answer), STRENGTH["ask"]), (first, every)


def read_config(data: bytes) -> None:
    """A file of settings, as a person's and as a project's that nobody trusts."""
    with suppress(UnicodeDecodeError, BadToml):
        text = data.decode()
        layer = Layer("user", parse_toml(text), str(PLACE), text)
        for each in (layer, restrict_untrusted(msgspec.structs.replace(layer, name="project"))[0]):
            with suppress(ConfigError):
                merge_layers(SETTINGS, [each]).as_dict()


def read_card(data: bytes) -> None:
    """The front matter of a card."""
    with suppress(BadFrontMatter):
        matter = read_front_matter(data.decode("utf-8", "replace"))
        assert set(matter.lines.values()) <= set(range(data.count(b"\n") + 2))


def read_note(data: bytes) -> None:
    """A note: what is found in it lies in it."""
    note = parse_note("folder/note.md", data)
    assert note == parse_note("folder/note.md", data)


def read_message(data: bytes) -> None:
    """A line of an MCP server, and what a call, a list of tools and a prompt make of it."""
    import mcp_types

    from cru.features.mcp.content import read_result
    from cru.features.mcp.listing import read_tool, screen_result

    try:
        message = mcp_types.jsonrpc_message_adapter.validate_json(data, by_name=False)
    except ValueError:
        return
    screen_result(message, [])
    result: Any = getattr(message, "result", None)
    with suppress(ValueError):
        read_result(mcp_types.CallToolResult.model_validate(result), lambda content, suffix: None)
    with suppress(ValueError):
        for tool in mcp_types.ListToolsResult.model_validate(result).tools:
            read_tool(tool)


def read_log(data: bytes) -> None:
    """Lines of a log: entries and problems, and an entry that is written again is the same."""
    entries, problems = decode_lines(data, 1)
    assert len(entries) + len(problems) <= data.count(b"\n") + 1
    for entry in entries:
        again, none = decode_lines(encode(replace_surrogates(entry)), 1)
        assert again == [replace_surrogates(entry)] and not none


TARGETS: dict[str, Target] = {
    "sse": read_events,
    "shell": read_shell,
    "rules": judge_command,
    "hooks": read_hook_output,
    "config": read_config,
    "cards": read_card,
    "notes": read_note,
    "mcp": read_message,
    "log": read_log,
}
