"""Crush's hooks (charmbracelet/crush at 37f36e938, and what its documentation announces): flat entries in crush.json."""

from __future__ import annotations

import signal
from collections.abc import Sequence

import msgspec

from cru.core.events.answers import PASS, Answer, Change
from cru.core.events.payloads import MessageReceived
from cru.core.events.stamp import Event
from cru.core.hooks.dialects import FOOTPRINTS
from cru.core.hooks.dialects.crush.config import read_entries
from cru.core.hooks.dialects.crush.output import CrushOutput, parse_output
from cru.core.hooks.dialects.crush.regex import to_python
from cru.core.hooks.model.entry import HookEntry, HookSource
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.model.mapping import (
    ArgumentMapping,
    ConfigFormat,
    Dialect,
    EventMapping,
    LaunchRules,
    Matching,
    ParsedFile,
    ToolMapping,
    number_argument,
)
from cru.core.hooks.model.result import HookResult, HookRun
from cru.core.hooks.parsing import common
from cru.core.hooks.parsing.bounded_regex import finds_any

DENY, HALT = 2, 49
MARKERS = {"CRUSH": "1", "AGENT": "crush", "AI_AGENT": "crush"}
EDITORS = ("EDITOR", "VISUAL", "GIT_EDITOR", "JJ_EDITOR")
PAGERS = ("PAGER", "GIT_PAGER", "JJ_PAGER")
QUIET = {"TERM": "xterm-256color", **dict.fromkeys(EDITORS, "false"), **dict.fromkeys(PAGERS, "cat")}
"""Nothing in a hook may wait for a person, whatever the user's own environment says."""
ENV_KEYS = ("command", "file_path")
TOOLS = ToolMapping(
    tools={
        "bash": ("bash",), "read": ("view",), "write": ("write",), "edit": ("edit", "multiedit"), "glob": ("glob",), "grep": ("grep",),
        "ls": ("ls",), "fetch": ("fetch", "web_fetch"), "update_todos": ("todos",),
        "task_output": ("job_output",), "task_cancel": ("job_kill",),
        "task": ("agent",),
    },
    arguments={
        "bash": {"background": ArgumentMapping("run_in_background")},
        "task_output": {"id": ArgumentMapping("shell_id")},
        "task_cancel": {"id": ArgumentMapping("shell_id")},
        "read": {"offset": number_argument("offset", lambda n: max(0, n - 1), lambda n: n + 1)},
    },
    dropped={"bash": ("description", "working_dir", "auto_background_after")},
)  # fmt: skip


def _read(source: HookSource, below: Sequence[ParsedFile], facts: SessionFacts) -> ParsedFile:
    return read_entries(source)


def _matcher_fits(entry: HookEntry, event: Event, subject: str) -> bool:
    """An unanchored regular expression on the tool's name: Crush's, or ours. Raises re.error: one that is broken fits nothing."""
    if not entry.matcher:
        return True
    pattern = to_python(entry.matcher)[0]
    return finds_any(pattern, TOOLS.names(subject))


def _stdin(mapping: EventMapping, event: Event, facts: SessionFacts) -> bytes:
    """Crush's own fields in its order, then what we add."""
    stamp = event.stamp
    known: dict[str, object] = {"event": mapping.name, "session_id": stamp.session_id, "cwd": str(facts.root)}
    more = {
        "hook_event_name": mapping.name, "is_sub_agent": stamp.is_sub_agent, "agent_id": stamp.agent_id,
        "depth": stamp.depth,
    }  # fmt: skip
    if stamp.agent_type:
        more["agent_type"] = stamp.agent_type
    return common.to_json_line({**known, **(mapping.fields(event, facts) if mapping.fields else {}), **more})


def _environment(entry: HookEntry, mapping: EventMapping, event: Event, facts: SessionFacts) -> dict[str, str]:
    env = {
        **MARKERS, **QUIET, "CRUSH_EVENT": mapping.name, "CRUSH_SESSION_ID": event.stamp.session_id,
        "CRUSH_IS_SUB_AGENT": "true" if event.stamp.is_sub_agent else "false",
    }  # fmt: skip
    if mapping.name == "PreToolUse":
        tool_input = _tool_input(event, facts)
        env["CRUSH_TOOL_NAME"] = TOOLS.foreign_name(common.tool_name(event))
        if isinstance(tool_input, dict):
            env |= {
                f"CRUSH_TOOL_INPUT_{key.upper()}": _scalar(tool_input[key]) for key in ENV_KEYS if key in tool_input
            }
    return env


def _scalar(value: object) -> str:
    """A value as Crush puts it into the environment: text as it is, null as nothing, tables and lists as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _unread(event: Event) -> str | None:
    """What the model sent instead of an object, as it was; None if it sent one."""
    args = common.tool_arguments(event)
    return args["_raw"] if set(args) == {"_raw"} and not getattr(event.payload, "valid", True) else None


def _tool_input(event: Event, facts: SessionFacts) -> object:
    """The arguments; other JSON than an object as it is, an empty object for what is no JSON."""
    raw = _unread(event)
    if raw is None:
        return TOOLS.to_foreign(common.tool_name(event), common.tool_arguments(event), facts.root)
    value, wrong = common.parse_json(raw)
    return {} if wrong else value


def _tool_fields(event: Event, facts: SessionFacts) -> dict[str, object]:
    return {
        "tool_name": TOOLS.foreign_name(common.tool_name(event)), "tool_input": _tool_input(event, facts),
        "tool_use_id": getattr(event.payload, "call_id", ""),
    }  # fmt: skip


def _prompt_fields(event: Event[MessageReceived], facts: SessionFacts) -> dict[str, object]:
    payload = event.payload
    return {"prompt": payload.content, "attachments": [a.path for a in payload.attachments]}


def _by_exit(run: HookRun) -> HookResult | None:
    """What the exit status alone says; None if the output is to be read."""
    if run.exit == DENY:
        return HookResult(Answer(decision="deny", reason=run.stderr.strip() or "blocked by hook"))
    if run.exit == HALT:
        return HookResult(Answer(decision="deny", halt=True, reason=run.stderr.strip() or "turn halted by hook"))
    if run.exit:
        first = run.stderr.strip().partition("\n")[0]
        return HookResult(failed=f"exit status {run.exit}" + (f": {first}" if first else ""))
    return None


def _on_tool(entry: HookEntry, event: Event, run: HookRun, facts: SessionFacts) -> HookResult:
    judged = _by_exit(run)
    if judged is not None:
        return judged
    output = parse_output(run.stdout)
    changes: tuple[Change, ...] = ()
    if output.updated_input is not msgspec.UNSET:
        if not isinstance(output.updated_input, dict):
            output.warnings.append("updated_input is not an object and is left out")
        elif _unread(event) is not None:
            output.warnings.append("the call's arguments are not an object, so updated_input is left out")
        else:
            tool = common.tool_name(event)
            changes = (Change("args", "merge", TOOLS.to_own(tool, output.updated_input)),)
    return HookResult(_answer(output, changes, facts), warning="; ".join(output.warnings))


def _on_prompt(entry: HookEntry, event: Event, run: HookRun, facts: SessionFacts) -> HookResult:
    judged = _by_exit(run)
    if judged is not None:
        return judged
    output = parse_output(run.stdout)
    if output.decision == "allow":
        output.decision = "none"  # there is no permission to give
    text = output.updated_prompt
    if (
        text is not None
        and not text.strip()
        and not (output.halt or output.decision == "deny" or _carries(event, output))
    ):
        output.decision, output.reason = "deny", "empty prompt"
    changes = (Change("content", "set", text),) if text is not None else ()
    rewrote = (
        changes and not output.halt and output.decision != "deny" and text != getattr(event.payload, "content", "")
    )
    notice = "rewrote the prompt" if rewrote else ""
    return HookResult(_answer(output, changes, facts), to_user=notice, warning="; ".join(output.warnings))


def _carries(event: Event, output: CrushOutput) -> bool:
    """Whether an empty prompt still brings something."""
    return bool(getattr(event.payload, "attachments", ()) or output.context or output.context_files)


def _answer(output: CrushOutput, changes: tuple[Change, ...], facts: SessionFacts) -> Answer:
    """Reasons are those of a deny or a halt; files are named from where the hook ran."""
    stops = output.halt or output.decision == "deny"
    answer = Answer(
        decision=output.decision, halt=output.halt, reason=output.reason if stops else "", changes=changes,
        context=(output.context,) if output.context else (),
        context_files=tuple(str(facts.root / path) for path in output.context_files),
    )  # fmt: skip
    return PASS if answer == PASS else answer


DIALECT = Dialect(
    name="crush",
    footprint=FOOTPRINTS["crush"],
    events={
        "PreToolUse": (EventMapping("PreToolUse", "tool:before_call", subject=common.tool_name, fields=_tool_fields, answer=_on_tool),),
        "UserPromptSubmit": (
            EventMapping(
                "UserPromptSubmit", "message:received", accepts=common.is_typed, fields=_prompt_fields, answer=_on_prompt,
            ),
        ),
    },
    config=ConfigFormat(read=_read),
    matching=Matching(matcher_fits=_matcher_fits),
    stdin=_stdin,
    extra_environment=_environment,
    tools=TOOLS,
    launch=LaunchRules(
        shells={"posix": ("bash", "sh", "brush"), "windows": ("git-bash", "brush")},
        end_signal=signal.SIGINT,
        dispatches_paths=True,
        variables={"CRUSH_CWD": "root", "CRUSH_PROJECT_DIR": "root"},
    ),
)  # fmt: skip
