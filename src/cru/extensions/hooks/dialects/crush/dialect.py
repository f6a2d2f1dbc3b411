"""Crush's hooks (charmbracelet/crush at 37f36e938, and what its documentation announces): flat entries in crush.json."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from cru.events.answers import PASS, Answer, Change
from cru.events.payloads import MessageReceived
from cru.events.stamp import Event
from cru.extensions.hooks.dialects.crush.output import Envelope, envelope
from cru.extensions.hooks.dialects.crush.regex import to_python
from cru.extensions.hooks.model import tool_names
from cru.extensions.hooks.model.entry import DialectName, HookEntry, HookFileProblem, HookSource, Layer
from cru.extensions.hooks.model.facts import SessionFacts
from cru.extensions.hooks.model.mapping import EventMapping
from cru.extensions.hooks.model.result import CommandResult, HookResult
from cru.extensions.hooks.parsing import common

DENY, HALT = 2, 49


class Crush:
    """See dialect.Dialect."""

    name: DialectName = "crush"
    runs_equal_once = True
    events: Mapping[str, Sequence[EventMapping]] = {}

    def places(self, about: SessionFacts) -> list[tuple[Layer, Path]]:
        """System, user, data folder, then from the project's root down to the working directory, the workspace's own last."""
        env, home = about.env, about.user_home
        user = Path(env.get("CRUSH_GLOBAL_CONFIG") or Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "crush")
        data = Path(env.get("CRUSH_GLOBAL_DATA") or Path(env.get("XDG_DATA_HOME") or home / ".local/share") / "crush")
        found: list[tuple[Layer, Path]] = [("system", Path("/etc/crush/crush.json"))]
        found += [("user", user / "crush.json"), ("user", user / "crushrc"), ("user", data / "crush.json")]
        for folder in _down(about.root, about.cwd):
            found += [("project", folder / name) for name in ("crush.json", ".crush.json", "crushrc", ".crushrc")]
        found.append(("project", about.cwd / ".crush" / "crush.json"))
        return found

    def parse(self, source: HookSource) -> tuple[list[HookEntry], list[HookFileProblem]]:
        from cru.extensions.hooks.dialects.crush.config import read_entries

        return read_entries(source)

    def matches(self, entry: HookEntry, event: Event, subject: str) -> bool:
        """An unanchored regular expression on the tool's name: Crush's, or ours. Raises re.error: one that is broken fits nothing."""
        if not entry.matcher:
            return True
        wanted = re.compile(to_python(entry.matcher)[0])
        return any(wanted.search(name) for name in tool_names.names("crush", subject))

    def stdin(self, entry: HookEntry, moment: EventMapping, event: Event, about: SessionFacts) -> bytes:
        """Crush's own fields in its order, then what we add."""
        stamp = event.stamp
        known: dict[str, Any] = {"event": moment.name, "session_id": stamp.session_id, "cwd": str(about.cwd)}
        more = {
            "hook_event_name": moment.name, "is_sub_agent": stamp.is_sub_agent, "agent_id": stamp.agent_id,
            "depth": stamp.depth,
        }  # fmt: skip
        return common.one_line({**known, **(moment.fields(event, about) if moment.fields else {}), **more})

    def environment(self, entry: HookEntry, moment: EventMapping, event: Event, about: SessionFacts) -> dict[str, str]:
        env = {
            **MARKERS, **QUIET, "CRUSH_EVENT": moment.name, "CRUSH_SESSION_ID": event.stamp.session_id,
            "CRUSH_CWD": str(about.cwd), "CRUSH_PROJECT_DIR": str(about.root),
            "CRUSH_IS_SUB_AGENT": "true" if event.stamp.is_sub_agent else "false",
        }  # fmt: skip
        if moment.name == "PreToolUse":
            given = _tool_input(event, about)
            env["CRUSH_TOOL_NAME"] = tool_names.foreign_name("crush", common.tool(event))
            if isinstance(given, dict):
                env |= {f"CRUSH_TOOL_INPUT_{key.upper()}": _scalar(given[key]) for key in ENV_KEYS if key in given}
        return env


MARKERS = {"CRUSH": "1", "AGENT": "crush", "AI_AGENT": "crush"}
EDITORS = ("EDITOR", "VISUAL", "GIT_EDITOR", "JJ_EDITOR")
PAGERS = ("PAGER", "GIT_PAGER", "JJ_PAGER")
QUIET = {"TERM": "xterm-256color", **dict.fromkeys(EDITORS, "false"), **dict.fromkeys(PAGERS, "cat")}
"""Nothing in a hook may wait for a person, whatever the user's own environment says."""
ENV_KEYS = ("command", "file_path")


def _down(root: Path, cwd: Path) -> list[Path]:
    """The folders from `root` to `cwd`, both among them; only `cwd` if it lies elsewhere."""
    if not cwd.is_relative_to(root):
        return [cwd]
    parts = cwd.relative_to(root).parts
    return [root.joinpath(*parts[:n]) for n in range(len(parts) + 1)]


def _scalar(value: Any) -> str:
    """A value as Crush puts it into the environment: text as it is, null as nothing, tables and lists as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _unread(event: Event) -> str | None:
    """What the model sent instead of an object, as it was; None if it sent one."""
    args = common.args(event)
    return args["_raw"] if set(args) == {"_raw"} and not getattr(event.payload, "valid", True) else None


def _tool_input(event: Event, about: SessionFacts) -> Any:
    """The arguments; other JSON than an object as it is, an empty object for what is no JSON."""
    raw = _unread(event)
    if raw is None:
        return tool_names.to_foreign_arguments("crush", common.tool(event), common.args(event), about.cwd)
    value, wrong = common.document(raw)
    return {} if wrong else value


def _tool_fields(event: Event, about: SessionFacts) -> dict[str, Any]:
    return {
        "tool_name": tool_names.foreign_name("crush", common.tool(event)), "tool_input": _tool_input(event, about),
        "tool_use_id": getattr(event.payload, "call_id", ""),
    }  # fmt: skip


def _prompt_fields(event: Event[MessageReceived], about: SessionFacts) -> dict[str, Any]:
    payload = event.payload
    return {"prompt": payload.content, "attachments": [a.path for a in payload.attachments]}


def _by_exit(run: CommandResult) -> HookResult | None:
    """What the exit status alone says; None if the output is to be read."""
    if run.exit == DENY:
        return HookResult(Answer(decision="deny", reason=run.stderr.strip() or "blocked by hook"))
    if run.exit == HALT:
        return HookResult(Answer(decision="deny", halt=True, reason=run.stderr.strip() or "turn halted by hook"))
    if run.exit:
        first = run.stderr.strip().partition("\n")[0]
        return HookResult(failed=f"exit status {run.exit}" + (f": {first}" if first else ""))
    return None


def _on_tool(entry: HookEntry, event: Event, run: CommandResult, about: SessionFacts) -> HookResult:
    judged = _by_exit(run)
    if judged is not None:
        return judged
    said = envelope(run.stdout)
    changes: tuple[Change, ...] = ()
    if said.updated_input is not msgspec.UNSET:
        if not isinstance(said.updated_input, dict):
            said.odd.append("updated_input is not an object and is left out")
        elif _unread(event) is not None:
            said.odd.append("the call's arguments are not an object, so updated_input is left out")
        else:
            tool = common.tool(event)
            changes = (Change("args", "merge", tool_names.to_own_arguments("crush", tool, said.updated_input)),)
    return HookResult(_answer(said, changes, about), warning="; ".join(said.odd))


def _on_prompt(entry: HookEntry, event: Event, run: CommandResult, about: SessionFacts) -> HookResult:
    judged = _by_exit(run)
    if judged is not None:
        return judged
    said = envelope(run.stdout)
    if said.decision == "allow":
        said.decision = "none"  # there is no permission to give
    text = said.updated_prompt
    if text is not None and not text.strip() and not (said.halt or said.decision == "deny" or _carries(event, said)):
        said.decision, said.reason = "deny", "empty prompt"
    changes = (Change("content", "set", text),) if text is not None else ()
    rewrote = changes and not said.halt and said.decision != "deny" and text != getattr(event.payload, "content", "")
    told = "rewrote the prompt" if rewrote else ""
    return HookResult(_answer(said, changes, about), to_user=told, warning="; ".join(said.odd))


def _carries(event: Event, said: Envelope) -> bool:
    """Whether an empty prompt still brings something."""
    return bool(getattr(event.payload, "attachments", ()) or said.context or said.context_files)


def _answer(said: Envelope, changes: tuple[Change, ...], about: SessionFacts) -> Answer:
    """Reasons are those of a deny or a halt; files are named from where the hook ran."""
    stops = said.halt or said.decision == "deny"
    made = Answer(
        decision=said.decision, halt=said.halt, reason=said.reason if stops else "", changes=changes,
        context=(said.context,) if said.context else (),
        context_files=tuple(str(about.cwd / path) for path in said.context_files),
    )  # fmt: skip
    return PASS if made == PASS else made


TYPED = ("user", "queue", "command")

Crush.events = {
    "PreToolUse": (EventMapping("PreToolUse", "tool:before_call", subject=common.tool, fields=_tool_fields, answer=_on_tool),),
    "UserPromptSubmit": (
        EventMapping(
            "UserPromptSubmit", "message:received", accepts=lambda event: event.stamp.source in TYPED,
            fields=_prompt_fields, answer=_on_prompt,
        ),
    ),
}  # fmt: skip
