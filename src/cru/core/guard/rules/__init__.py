"""What a tool call may do: rules, modes and grants. `gate.Gate.judge` decides by them; an `Asker` asks a person."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct, convert

from cru.core.base.config.layers import Layer

if TYPE_CHECKING:
    from cru.core.guard.rules.rules import Rule


class RuleLists(Struct, frozen=True):
    """Rules `tool:glob` by what they decide. One that cannot be read raises BadRule, which config reports with its place."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.allow or self.ask or self.deny:
            from cru.core.guard.rules.rules import parse_rule

            for text in (*self.allow, *self.ask, *self.deny):
                parse_rule(text)


class PermissionSettings(Struct, frozen=True):
    """The settings of this room.

    mode: a key of modes.MODES
    permissions: the rules of all layers together
    """

    mode: str = "ask"
    permissions: RuleLists = RuleLists()

    def __post_init__(self) -> None:
        if self.mode != "ask":
            from cru.core.guard.rules.modes import check_mode

            check_mode(self.mode)


DOCS = {
    "mode": "what may be done without asking: `ask` only reads, `auto` also edits inside the project, `plan` refuses all but "
    "reading, `trust` allows everything (`-t`)",
    "permissions": "rules `tool:glob`; the lists of all layers add up; deny beats ask beats allow",
    "permissions.allow": "calls that need no question; read narrowly",
    "permissions.ask": "calls that need a question in every mode; read broadly",
    "permissions.deny": "calls that are refused in every mode; read broadly",
}


class LayerRules(Struct, frozen=True):
    """The rules of one layer.

    layer: its name
    lists: its rules
    file: its path; "" for the command line
    text: what stands in the file, for the lines of its rules
    program: whose settings they are, "" for cru's own
    lines: of rules in another program's writing, by what they decide and their text in ours
    """

    layer: str
    lists: RuleLists
    file: str = ""
    text: str = ""
    program: str = ""
    lines: Mapping[tuple[str, str], int] = {}


def layer_rules(layers: Iterable[Layer]) -> tuple[LayerRules, ...]:
    """The rules by layer, out of layers that `merge_layers` has accepted; layers without rules are left out."""
    return tuple(
        LayerRules(layer.name, convert(layer.data["permissions"], RuleLists), layer.file, layer.text)
        for layer in layers
        if isinstance(layer.data.get("permissions"), dict)
    )


def parse_layers(layers: Sequence[LayerRules], name: Literal["allow", "ask", "deny"]) -> "tuple[Rule, ...]":
    """The rules of all layers with one decision."""
    if not layers:
        return ()
    from cru.core.guard.rules.rules import parse_rule

    return tuple(
        parse_rule(text, layer.file or f"the {layer.layer}", layer)
        for layer in layers
        for text in getattr(layer.lists, name)
    )


ReplyScope = Literal["once", "session", "project", "always", "no"]


class RuleEditing(Struct, frozen=True):
    """How a person may edit the rule that an answer keeps.

    proposal: what is there to begin with
    why_not: why a rule is not kept for the call at hand, "" if it is
    """

    proposal: str
    why_not: Callable[[str], str]


class PermissionSubject(Struct, frozen=True):
    """What a person is asked about.

    tool: its name
    kind: read, write, shell, fetch, message, memory, flow or tool
    detail: what a rule's glob matches: a command, a path, a URL
    why: the reason for the question
    rule: what the answers session, project and always would store
    preview: what would be written or sent, without control characters; "": the detail says it all
    is_limit: it is no call, but a turn that may go on or end here
    why_once: why no rule is offered, if somebody wants the question each time
    changed_by: the handlers that changed the call; before: what it was, if `detail` does not say the same
    agent: the sub-agent that wants to do it, "" for the main agent
    parts: of a command of several parts, each with what happens to it and why; a line each
    folder: where it happens, if that is not the project's root
    editing: None: the rule is not to be edited
    """

    tool: str
    kind: str
    detail: str
    why: str = ""
    rule: str = ""
    preview: str = ""
    is_limit: bool = False
    why_once: str = ""
    agent: str = ""
    changed_by: str = ""
    before: str = ""
    parts: tuple[str, ...] = ()
    folder: str = ""
    editing: RuleEditing | None = None


class PermissionReply(Struct, frozen=True):
    """A person's answer.

    choice: how far it reaches
    reason: goes to the model when the choice is no
    rule: what is kept in the place of the subject's rule, as the person edited it
    """

    choice: ReplyScope
    reason: str = ""
    rule: str = ""

    def as_response(self) -> dict[str, object]:
        """Return the reply in the words of Crucible's permission dialog."""
        scope = {"no": "once", "always": "user"}.get(self.choice, self.choice)
        return {"allowed": self.choice != "no", "scope": scope, "pattern": self.rule, "reason": self.reason}


class Asker(Protocol):
    async def ask(self, subject: PermissionSubject) -> PermissionReply | None:
        """None: nobody is there."""


class NoAsker:
    """The default asker: nobody is there."""

    async def ask(self, subject: PermissionSubject) -> PermissionReply | None:
        return None
