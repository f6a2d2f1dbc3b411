"""THE table: every event, when it fires, what a handler may change, where added context lands.

docs/events.md is generated from it; names, suggestions and checks come from it.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from cru.core.events import payloads as p

Kind = Literal["observe", "transform", "gate"]
Lands = Literal["", "beside the prompt", "after the tool result", "a section", "the next request"]


class EventRow(Struct, frozen=True):
    """One event.

    when: it fires, for the documentation
    writable: fields of the payload that handlers may change
    cancel: what a cancel means, "": nothing
    context: where added context lands; "": it has no place
    inject: whether an inject has a place
    result: what a result means; "": it has no place
    updates: whether changes of what is permitted have a place
    outcome: whether it says how the turn ends
    scope: of handlers that name none
    ident: the field of the payload that patterns match
    fails: what a failing in-process handler means
    live: whether anything fires it yet
    in_turn: whether there is a turn to halt
    """

    name: str
    payload: type[Struct]
    kind: Kind
    when: str
    writable: tuple[str, ...] = ()
    cancel: str = ""
    context: Lands = ""
    inject: bool = False
    result: str = ""
    updates: bool = False
    outcome: bool = False
    scope: Literal["main", "tree"] = "main"
    ident: str = ""
    fails: Literal["pass", "deny"] = "pass"
    live: bool = True
    in_turn: bool = True


def _row(name: str, payload: type[Struct], kind: Kind, when: str, **more: object) -> EventRow:
    return EventRow(name, payload, kind, when, **more)  # type: ignore[arg-type]


_PROMPT: Lands = "beside the prompt"
_RESULT: Lands = "after the tool result"
_NEXT: Lands = "the next request"

CATALOG: tuple[EventRow, ...] = (
    _row(
        "session:started",
        p.SessionStarted,
        "observe",
        "a context is opened",
        context=_PROMPT,
        inject=True,
        in_turn=False,
    ),
    _row("session:paused", p.SessionPaused, "observe", "control is handed over", in_turn=False),
    _row("session:resumed", p.SessionResumed, "observe", "control is handed back", in_turn=False),
    _row("session:idle", p.SessionIdle, "observe", "the agent awaits input; once per idle", inject=True, in_turn=False),
    _row("session:ended", p.SessionEnded, "observe", "the context is closed", in_turn=False),
    _row("context:switched", p.ContextSwitched, "observe", "another context became current", in_turn=False),
    _row("context:clearing", p.ContextClearing, "observe", "before a context is archived", in_turn=False),
    _row("context:cleared", p.ContextCleared, "observe", "after a context was archived", in_turn=False),
    _row("config:changed", p.ConfigChanged, "observe", "a command wrote a setting", ident="key", in_turn=False),
    _row("model:selected", p.ModelSelected, "observe", "a model was chosen", ident="model", in_turn=False),
    _row("todo:changed", p.TodoChanged, "observe", "the todo list was rewritten"),
    _row(
        "message:received",
        p.MessageReceived,
        "gate",
        "a prompt is dispatched",
        writable=("content", "attachments"),
        cancel="the prompt is not sent",
        context=_PROMPT,
        inject=True,
    ),
    _row(
        "leg:started",
        p.LegStarted,
        "transform",
        "before the first request of a leg",
        writable=("fuel", "fallback"),
    ),
    _row(
        "system_prompt:build",
        p.SystemPromptBuild,
        "transform",
        "once a leg",
        writable=("sections",),
        context="a section",
    ),
    _row(
        "tools:select",
        p.ToolsSelect,
        "transform",
        "once a leg; may only narrow",
        writable=("tools",),
        scope="tree",
    ),
    _row(
        "message:before_send",
        p.MessageBeforeSend,
        "gate",
        "before every request",
        writable=("model", "parameters", "messages", "prompt"),
        cancel="the request is not made, the leg ends",
        context="beside the prompt",
        inject=True,
        scope="tree",
        ident="model",
    ),
    _row("streaming:delta", p.StreamingDelta, "observe", "text arrives (coalesced)"),
    _row("agent:thinking", p.AgentThinking, "observe", "reasoning arrives (coalesced)"),
    _row(
        "agent:responded",
        p.AgentResponded,
        "transform",
        "a reply is whole",
        writable=("display",),
        context=_NEXT,
        inject=True,
    ),
    _row(
        "tool:before_call",
        p.ToolBeforeCall,
        "gate",
        "each call, before the permission question",
        writable=("args", "env"),
        cancel="the call is denied",
        context=_RESULT,
        inject=True,
        result="is the call's outcome; the tool does not run",
        scope="tree",
        ident="name",
        fails="deny",
    ),
    _row(
        "permission:requested",
        p.PermissionRequested,
        "gate",
        "a question would be asked",
        writable=("args",),
        cancel="the call is denied",
        context=_RESULT,
        inject=True,
        result="answers the question",
        updates=True,
        scope="tree",
        ident="tool",
        fails="deny",
    ),
    _row("permission:resolved", p.PermissionResolved, "observe", "it is decided, by whom", scope="tree", ident="tool"),
    _row("interaction:requested", p.InteractionRequested, "observe", "a dialog with a person opens", scope="tree"),
    _row("interaction:completed", p.InteractionCompleted, "observe", "the dialog is answered", scope="tree"),
    _row(
        "tool:called",
        p.ToolCalled,
        "observe",
        "running begins",
        scope="tree",
        ident="name",
        context=_RESULT,
        inject=True,
    ),
    _row(
        "tool:completed",
        p.ToolCompleted,
        "transform",
        "a call ended well",
        writable=("result",),
        context=_RESULT,
        inject=True,
        scope="tree",
        ident="name",
    ),
    _row(
        "tool:failed",
        p.ToolFailed,
        "transform",
        "a call was denied, invalid, failed or timed out",
        writable=("error",),
        context=_RESULT,
        inject=True,
        scope="tree",
        ident="name",
    ),
    _row(
        "output:cached",
        p.OutputCached,
        "gate",
        "output over the limit is about to be spilled",
        writable=("summary",),
        cancel="it is sent in full",
        scope="tree",
        ident="tool",
        result="is the summary",
    ),
    _row("tool:settled", p.ToolSettled, "observe", "its result is what the model reads", scope="tree", ident="name"),
    _row(
        "tool:batch_completed",
        p.ToolBatchCompleted,
        "transform",
        "all calls of one reply are done",
        writable=("fuel", "fallback"),
        context=_NEXT,
        inject=True,
        scope="tree",
    ),
    _row(
        "context:overflow",
        p.ContextOverflow,
        "gate",
        "the size is over the threshold, or a compaction was asked for",
        writable=("strategy", "summary_prompt"),
        cancel="the compaction is skipped",
        result="is the summary",
        ident="trigger",
    ),
    _row("session:compacted", p.SessionCompacted, "observe", "after a compaction"),
    _row(
        "turn:complete",
        p.TurnComplete,
        "gate",
        "the end of every leg, with its cause",
        cancel="no continuation",
        context=_NEXT,
        inject=True,
        outcome=True,
        ident="cause",
    ),
    _row(
        "turn:ending",
        p.TurnEnding,
        "gate",
        "a turn is about to end as done: the last word on whether it is",
        cancel="the turn ends as failed",
        context=_NEXT,
        inject=True,
        outcome=True,
    ),
    _row("injection_pending", p.InjectionPending, "observe", "an inject was accepted"),
    _row(
        "inbox:sending",
        p.InboxSending,
        "gate",
        "a message to another context is about to go",
        cancel="it is not sent",
        ident="to",
        result="the handler delivered it",
    ),
    _row("inbox:sent", p.InboxSent, "observe", "the message was delivered, or could not be", ident="to"),
    _row(
        "task:spawned",
        p.TaskSpawned,
        "gate",
        "a sub-agent or background command is about to start",
        writable=("prompt", "model", "tools"),
        cancel="it does not start",
        context=_PROMPT,
        result="the handler did it instead",
        scope="tree",
        ident="kind",
        fails="deny",
    ),
    _row("task:completed", p.TaskCompleted, "observe", "it ended well", inject=True, scope="tree", ident="kind"),
    _row("task:failed", p.TaskFailed, "observe", "it failed", inject=True, scope="tree", ident="kind"),
    _row(
        "file:changed",
        p.FileChanged,
        "observe",
        "a file of the vault was created, modified or deleted",
        ident="path",
        in_turn=False,
    ),
    _row(
        "note:parsed",
        p.NoteParsed,
        "observe",
        "a note was read, since it is new or changed",
        ident="path",
        in_turn=False,
    ),
    _row("note:created", p.NoteCreated, "observe", "a note is new in the vault", ident="path", in_turn=False),
    _row("note:modified", p.NoteModified, "observe", "a note of the vault changed", ident="path", in_turn=False),
    _row("note:deleted", p.NoteDeleted, "observe", "a note of the vault is gone", ident="path", in_turn=False),
    _row(
        "note:renamed",
        p.NoteRenamed,
        "observe",
        "a note of the vault has a new path; after `note:deleted` and `note:created`",
        ident="new",
        in_turn=False,
    ),
    _row(
        "notes:select",
        p.NotesSelect,
        "transform",
        "notes of the vault are about to be put beside a prompt (`[vault] grounding`)",
        writable=("results",),
    ),
    _row("mcp:attached", p.McpAttached, "observe", "the tools of an MCP server join the others", ident="server"),
    _row(
        "tool:discovered",
        p.ToolDiscovered,
        "observe",
        "a tool of an MCP server can be called from now on",
        scope="tree",
        ident="name",
    ),
    _row("custom", p.Custom, "observe", "a script emitted it", ident="name", scope="tree"),
)

BY_NAME: dict[str, EventRow] = {row.name: row for row in CATALOG}
BY_TYPE: dict[type[Struct], EventRow] = {row.payload: row for row in CATALOG}

# Other names of ours for an event, some narrowed to one value of the identifier.
ALIASES: dict[str, tuple[str, str]] = {
    "compact:before": ("context:overflow", ""),
    "turn:failed": ("turn:complete", "error"),
    "turn:interrupted": ("turn:complete", "interrupted"),
}
