"""What a command or skill gives the model: its text with arguments, with the output of its commands, and with the files that it names."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

import msgspec
from msgspec.structs import replace

from cru.core.base.files.regular import read_regular
from cru.core.base.values.visible import visible
from cru.core.commands.prompt_files import ExpansionFailed, FileOrigin, PromptFileKind, PromptPlaces
from cru.core.commands.prompt_files.expansion import expand, find_mentions
from cru.core.commands.prompt_files.files import PromptFile, check_usable, leads_out
from cru.core.commands.prompt_files.trusted import check_trusted
from cru.core.conversations.entries import new_id
from cru.core.events.payloads import FailureKind
from cru.core.guard.trust.accepted_files import TrustStore
from cru.core.hooks.dialects.claude.permissions import translate_rules
from cru.core.hooks.model.facts import SessionFacts
from cru.core.tools.output import is_too_long, save_output
from cru.core.tools.protocol import SecretVariables
from cru.core.turn.calls import side_calls
from cru.core.turn.parts import Parts

ORIGIN = "command"
"""Who calls a tool: neither the model nor a person, but a file that one of them has named."""
FILE_LIMIT = 1 << 20
"""Bytes of a file that a text names with `@`."""
NO_OUTPUT = "(no output)"
SOURCES = {FileOrigin.USER: "userSettings", FileOrigin.PROJECT: "projectSettings"}


class PromptFileRunner:
    """Expands the files of one session. granted: rules that hold until the next prompt, as `allowed-tools` of the file that gave it"""

    def __init__(self, parts: Parts, places: PromptPlaces) -> None:
        self.places = places
        self._parts = parts
        self._granted: list[str] = []

    async def expand(self, file: PromptFile, typed: str, parts: Parts | None = None, *, by_person: bool = False) -> str:
        """parts: of the agent that wants it; None: the main one. by_person: a person has typed it, and a file of theirs runs its commands
        with their keys. Raises PromptFileError, NotAccepted."""
        self.check(file)
        is_own = by_person and file.origin is FileOrigin.USER
        parts = parts or self._parts
        if parts is self._parts:
            self._grant(file)
        is_skill = file.kind is PromptFileKind.SKILL
        variables = {"CLAUDE_SKILL_DIR": str(file.folder)} if is_skill else {}
        pieces = expand(file.body, typed, file.argument_names, variables)
        plain = "\n".join(piece.text for piece in pieces if not piece.is_command)
        files = [] if is_skill else list(self._mentioned(file, find_mentions(plain)))
        runs = replace(parts, place=replace(parts.place, secrets=SecretVariables())) if is_own else parts
        asked_by = {"name": file.name, "source": SOURCES[file.origin], "invoked_by": "user" if by_person else "model"}
        call_ids = (f"{prefix}:preamble-{number}" for prefix in [new_id()] for number in count())
        texts = [
            await self._output(runs, file, piece.text, next(call_ids), asked_by) if piece.is_command else piece.text
            for piece in pieces
        ]
        heading = [f"Base directory for this skill: {file.folder}"] if is_skill else []
        return "\n\n".join([*heading, "".join(texts).strip("\n"), *files])

    def check(self, file: PromptFile) -> None:
        """Raises PromptFileError if the file cannot be used, and NotAccepted if nobody has accepted it."""
        check_usable(file)
        check_trusted(file, self.places, TrustStore(self.places.home / "trust.json"))

    def tell_oddities(self, file: PromptFile) -> None:
        """What a command says that has no effect; of skills that is told when the session begins."""
        for problem in file.problems if file.kind is PromptFileKind.COMMAND else ():
            self._parts.bus.stream.warn(visible(problem))

    def _grant(self, file: PromptFile) -> None:
        if not file.allowed_tools:
            return
        places, parts = self.places, self._parts
        facts = SessionFacts(
            "", parts.store.name, parts.store.folder, places.cwd, places.root, places.home, places.user_home, {},
            lambda: parts.gate.mode, Path,
        )  # fmt: skip
        rules, problems = translate_rules(file.allowed_tools, "allow", facts)
        for text in problems:
            parts.bus.stream.warn(f"{file.path}: `allowed-tools`: {text}")
        known = {rule.text for rule in parts.gate.rules_of("allow")}
        for rule in rules:
            if rule not in known:
                parts.gate.grants.add("session", rule)
                self._granted.append(rule)

    async def take_back(self) -> None:
        """Before the next prompt: what the last command permitted ends."""
        for rule in self._granted:
            self._parts.gate.grants.remove(rule, ("session",))
        self._granted.clear()

    async def _output(self, parts: Parts, file: PromptFile, line: str, call_id: str, asked_by: dict[str, str]) -> str:
        """Return what a `!` line printed, or in its place why a hook refused it. Raises ExpansionFailed."""
        arguments = msgspec.json.encode({"command": line}).decode()
        ran = await side_calls.call(parts, "bash", arguments, ORIGIN, call_id=call_id, prompt_file=asked_by)
        if ran.failure_kind is FailureKind.HOOK:
            reason = " ".join(ran.answer.reason.split())
            parts.bus.stream.warn(f"/{file.name}: `{line}` was not run: {ran.content}")
            return f"[not run: blocked by hook{f': {reason}' if reason else ''}]"
        if ran.is_error:
            raise ExpansionFailed(f"/{file.name}: `{line}`: {ran.content}", "nothing was sent to the model")
        text = "" if ran.content == NO_OUTPUT else ran.content
        if is_too_long(text, parts.tool_services.settings):
            text, _ = save_output(
                parts.store.folder, f"command_{ran.call.id}", "bash", text, parts.tool_services.settings, None
            )
        return text

    def _mentioned(self, file: PromptFile, names: Sequence[str]) -> Iterator[str]:
        """The files that a command names, as they would be attached; one that may not be read says so in its place."""
        for name in names:
            path = Path(os.path.join(self.places.cwd, os.path.expanduser(name)))
            if not path.is_file():
                continue
            why = self._why_not(file, path)
            if not why:
                try:
                    yield f"--- FILE {path} ---\n{read_regular(path, FILE_LIMIT).decode()}\n--- END OF {path} ---"
                    continue
                except OSError as error:
                    why = error.strerror or str(error)
                except UnicodeDecodeError:
                    why = "it is no text"
            self._parts.bus.stream.warn(f"/{file.name}: @{name} is not brought along: {why}")
            yield f"[@{name} is not brought along: {why}]"

    def _why_not(self, file: PromptFile, path: Path) -> str:
        if file.origin is FileOrigin.PROJECT and leads_out(path, self.places.root):
            return "it leads out of the project"
        verdict = self._parts.gate.judge("read", "read", str(path), [("read", str(path))])
        return "" if verdict.decision == "allow" else verdict.reason


ModelChooser = Callable[[str], Awaitable[str]]
"""The model that a file's `model` means; "": the one that answers anyway."""
