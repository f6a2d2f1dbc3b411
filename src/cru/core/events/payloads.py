"""The payload of every event: one frozen record each. The catalog says which fields handlers may change. Durations are milliseconds."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from cru.core.base.values.messages import FailureKind as FailureKind
from cru.core.base.values.messages import Image, Message, OfferedNote, Span, ToolCall, Usage


class SessionStarted(Struct, frozen=True):
    context: str
    folder: str
    resumed: bool = False
    source: str = "startup"
    model: str = ""
    sandbox: str = ""


class SessionPaused(Struct, frozen=True):
    how: str


class SessionResumed(Struct, frozen=True):
    how: str


class SessionIdle(Struct, frozen=True):
    context: str
    input_type: str = "prompt"


class SessionEnded(Struct, frozen=True):
    reason: str


class ContextSwitched(Struct, frozen=True):
    """transient: for this run only (`cru -C`); it is the current one after the run, too, if not."""

    old: str
    new: str
    transient: bool = False


class ContextClearing(Struct, frozen=True):
    context: str
    how: str = "archive"


class ContextCleared(Struct, frozen=True):
    context: str
    how: str = "archive"


class ConfigChanged(Struct, frozen=True):
    key: str
    value: Any = None


class ModelSelected(Struct, frozen=True):
    """requested: the name that a person asked for (/model), "" if nobody did; before: the model that it takes the place of, if known."""

    provider: str
    model: str
    why: str = ""
    requested: str = ""
    before: str = ""


class TodoChanged(Struct, frozen=True):
    context: str
    text: str


class Attachment(Struct, frozen=True, omit_defaults=True):
    """A file given with a prompt; text is what the model reads, "" of an image, whose bytes no handler sees."""

    path: str
    text: str
    image: Image | None = None


class MessageReceived(Struct, frozen=True):
    content: str
    attachments: tuple[Attachment, ...] = ()
    participant_id: str = "user"
    ref: str = ""


class LegStarted(Struct, frozen=True):
    message: str
    fuel: int
    fallback: str = "call_user"


class SystemPromptBuild(Struct, frozen=True):
    sections: tuple[Span, ...]


class ToolsSelect(Struct, frozen=True):
    tools: tuple[str, ...]


class MessageBeforeSend(Struct, frozen=True):
    model: str
    parameters: dict[str, Any]
    messages: tuple[Message, ...]
    prompt: str = ""
    round: int = 1


class StreamingDelta(Struct, frozen=True):
    delta: str
    seq: int = 0


class AgentThinking(Struct, frozen=True):
    thought: str
    seq: int = 0


class AgentResponded(Struct, frozen=True):
    content: str
    display: str
    final: bool
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    ref: str = ""


class ToolBeforeCall(Struct, frozen=True):
    name: str
    args: dict[str, Any]
    call_id: str
    kind: str = "tool"
    env: dict[str, str] = {}
    valid: bool = True
    error: str = ""
    origin: str = "model"
    prompt_file: dict[str, str] = {}


class PermissionRequested(Struct, frozen=True):
    tool: str
    kind: str
    detail: str
    call_id: str = ""
    why: str = ""
    args: dict[str, Any] = {}
    paths: tuple[str, ...] = ()
    suggestion: str = ""


class PermissionResolved(Struct, frozen=True):
    """decision: allow or deny; by: policy, human, timeout, error, user (who ran the call themselves), or a handler's owner"""

    tool: str
    kind: str
    decision: str
    by: str
    call_id: str = ""
    reason: str = ""


class InteractionRequested(Struct, frozen=True):
    id: str
    kind: str
    prompt: str


class InteractionCompleted(Struct, frozen=True):
    id: str
    kind: str
    outcome: str
    response: dict[str, Any] | None = None


class ToolCalled(Struct, frozen=True):
    name: str
    args: dict[str, Any]
    call_id: str


class ToolCompleted(Struct, frozen=True):
    name: str
    args: dict[str, Any]
    result: str
    call_id: str
    duration: float = 0.0
    ref: str = ""


class ToolFailed(Struct, frozen=True):
    """which: policy, hook, human, timeout, invalid, unknown, failed, halted or interrupted."""

    name: str
    args: dict[str, Any]
    error: str
    which: str
    call_id: str
    duration: float = 0.0
    ref: str = ""


class ToolSettled(Struct, frozen=True):
    """output: what the tool gave, whole; content: what the model reads; cached: the file that holds a long output, "" if there is none."""

    name: str
    args: dict[str, Any]
    output: str
    content: str
    call_id: str
    is_error: bool = False
    cached: str = ""


class OutputCached(Struct, frozen=True):
    tool: str
    args: dict[str, Any]
    content: str
    size: int
    lines: int
    summary: str = ""


class ToolBatchCompleted(Struct, frozen=True):
    tool_calls: tuple[ToolCall, ...]
    fuel: int
    fallback: str = "call_user"


class ContextOverflow(Struct, frozen=True):
    """Sizes in estimated tokens; trigger: auto, manual, none; summary: the one so far; instructions: a person's, in summary_prompt, too"""

    used: int
    limit: int
    percent: float
    strategy: str
    summary_prompt: str
    trigger: str = "auto"
    messages: int = 0
    summary: str = ""
    instructions: str = ""


class SessionCompacted(Struct, frozen=True):
    """dropped, kept: entries of the log; archived, messages: how many messages are among them; summary: the new one."""

    summary: str
    dropped: int
    kept: int
    trigger: str = "auto"
    messages: int = 0
    archived: int = 0


class TurnComplete(Struct, frozen=True):
    """cause: done, cancelled, halted, interrupted or error; queued: prompts that wait; called_user: whether call_user ended the leg"""

    cause: str
    response: str
    ref: str
    rounds: int = 0
    continuations: int = 0
    no_progress: int = 0
    error: str = ""
    recurse: str | None = None
    queued: int = 0
    fallback: str = "call_user"
    called_user: bool = False


class TurnEnding(Struct, frozen=True):
    response: str
    ref: str
    evidence: tuple[str, ...] = ()


class InjectionPending(Struct, frozen=True):
    content: str
    position: str
    is_continuation: bool = True


class InboxSending(Struct, frozen=True):
    to: str
    content: str
    sender: str


class InboxSent(Struct, frozen=True):
    """delivered_by: the inbox, or who delivered it in its place; "" if it was not; result: what the sender reads of that."""

    to: str
    content: str
    sender: str
    delivered_by: str = "inbox"
    result: str = ""


class TaskSpawned(Struct, frozen=True):
    """kind: subagent or bash; prompt, command: what is asked, or run; tools: globs of what the agent may call, None: as its card says"""

    id: str
    kind: str
    prompt: str
    model: str = ""
    tools: tuple[str, ...] | None = None
    agent: str = ""
    command: str = ""
    description: str = ""
    call_id: str = ""
    background: bool = False


class TaskCompleted(Struct, frozen=True):
    """result: a sub-agent's answer; output, exit_code: of a command; folder: its files. Of TaskFailed error: why; cancelled_by: who."""

    id: str
    kind: str
    result: str
    agent: str = ""
    output: str = ""
    exit_code: int | None = None
    description: str = ""
    folder: str = ""
    background: bool = False
    prompt: str = ""
    model: str = ""


class TaskFailed(Struct, frozen=True):
    id: str
    kind: str
    error: str
    agent: str = ""
    output: str = ""
    exit_code: int | None = None
    description: str = ""
    folder: str = ""
    background: bool = False
    cancelled_by: str = ""


class FileChanged(Struct, frozen=True):
    path: str
    kind: str


class NoteParsed(Struct, frozen=True):
    path: str
    block_count: int = 0


class NoteCreated(Struct, frozen=True):
    path: str
    title: str = ""


class NoteModified(Struct, frozen=True):
    path: str
    change_type: str = "content"


class NoteDeleted(Struct, frozen=True):
    path: str
    existed: bool = True


class NoteRenamed(Struct, frozen=True):
    old: str
    new: str


class NotesSelect(Struct, frozen=True):
    """note_count: of `results`; char_budget: what all of them may take"""

    user_message: str
    note_count: int
    char_budget: int
    results: tuple[OfferedNote, ...]


class McpAttached(Struct, frozen=True):
    server: str
    tool_count: int


class ToolDiscovered(Struct, frozen=True):
    name: str
    source: str


class Custom(Struct, frozen=True):
    """An event that a script made up."""

    name: str
    data: Any = None
