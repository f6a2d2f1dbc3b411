"""A workflow as people see it: lines for the terminal, Mermaid, and plain data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cru.features.workflows.definition import Definition, Guard, Limits, WorkflowState
from cru.features.workflows.texts import pluralize

# Words that mean something else at the beginning of a line of a state diagram.
RESERVED = frozenset(
    {"as", "choice", "class", "classDef", "default", "direction", "end", "fork", "hide", "join", "note", "scale", "state", "style"}
)  # fmt: skip
# What ends a label of Mermaid, as the entities that it shows as these characters.
ENTITIES = str.maketrans({"#": "#35;", ":": "#58;", ";": "#59;", '"': "#quot;", "\n": " "})
WIDTH = 32


def draw_text(definition: Definition, current: str) -> str:
    """States in the order in which they are reached, each with its ways out; `*` marks the current one."""
    head = f"{definition.name}: {definition.about}" if definition.about else definition.name
    return "\n".join(
        [head, f"at most {describe_limits(definition.limits)} in all", ""]
        + [line for state in definition.states.values() for line in _lines(definition, state, current)]
    )


def _lines(definition: Definition, state: WorkflowState, current: str) -> Iterator[str]:
    about = [state.about] if state.about else []
    if state.tools is not None:
        about.append(f"tools: {', '.join(state.tools) or 'none'}")
    marks = [word for word, holds in (("initial", state.name == definition.initial), ("final", state.final)) if holds]
    name = f"{'*' if state.name == current else ' '} {state.name}{f' ({marks[0]})' if marks else ''}"
    yield f"{name:<{WIDTH}}{'; '.join(about)}".rstrip()
    check = f"[{state.guard.words()}]--" if state.guard is not None else ""
    for target in state.to:
        yield f"    --{check}> {target}"
    for target in state.back:
        yield f"    --> {target:<{WIDTH - 8}}back, without a check".rstrip()
    if state.limits != Limits():
        yield f"    ..> {state.limits.on_limit or 'stops':<{WIDTH - 8}}after {describe_limits(state.limits)}"


def describe_limits(limits: Limits) -> str:
    """Limits in words."""
    return " or ".join(pluralize(most, word) for most, word in ((limits.legs, "leg"), (limits.rounds, "round")) if most)


def draw_mermaid(definition: Definition, current: str) -> str:
    """A stateDiagram-v2."""
    ids = {
        name: name if name.replace("_", "").isalnum() and name not in RESERVED else f"s{number}"
        for number, name in enumerate(definition.states, 1)
    }
    lines = ["stateDiagram-v2"]
    lines += [f'    state "{name}" as {short}' for name, short in ids.items() if short != name]
    lines.append(f"    [*] --> {ids[definition.initial]}")
    for state in definition.states.values():
        lines += [f"    {ids[state.name]} --> {way}" for way in _ways(state, ids)]
    if current in ids:
        lines += ["    classDef current font-weight:bold,stroke-width:3px", f"    class {ids[current]} current"]
    return "\n".join(lines)


def _ways(state: WorkflowState, ids: dict[str, str]) -> Iterator[str]:
    label = f": {state.guard.words().translate(ENTITIES)}" if state.guard is not None else ""
    for target in state.to:
        yield ids[target] + label
    for target in state.back:
        yield f"{ids[target]}: back"
    if state.limits.on_limit:
        yield f"{ids[state.limits.on_limit]}: after {describe_limits(state.limits)}"
    if state.final:
        yield "[*]"


def definition_data(definition: Definition) -> dict[str, Any]:
    """The definition as plain data; of a function only that it is one."""
    return {
        "name": definition.name, "about": definition.about, "initial": definition.initial, "limits": _limits(definition.limits),
        "states": {
            state.name: {
                "instruction": state.instruction, "about": state.about, "tools": state.tools, "to": state.to, "back": state.back,
                "exit": _guard(state.guard), "limits": _limits(state.limits), "final": state.final,
            }
            for state in definition.states.values()
        },
    }  # fmt: skip


def _limits(limits: Limits) -> dict[str, Any]:
    return {"legs": limits.legs or None, "rounds": limits.rounds or None, "on_limit": limits.on_limit or None}


def _guard(guard: Guard | None) -> dict[str, Any] | None:
    if guard is None:
        return None
    kind = {"shell": guard.shell} if guard.shell else {"call": True}
    return {**kind, "timeout": guard.timeout, "about": guard.words()}
