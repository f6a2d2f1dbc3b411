"""What a Crush hook prints: one JSON envelope on standard output."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field

from cru.core.hooks.parsing import common


class CrushOutput(Struct):
    """The envelope as far as it could be read. updated_input: what was given, UNSET if nothing; warnings: what was left out and why."""

    decision: Literal["none", "allow", "deny"] = "none"
    halt: bool = False
    reason: str = ""
    context: str = ""
    context_files: list[str] = field(default_factory=list)
    updated_input: Any | UnsetType = UNSET
    updated_prompt: str | None = None
    warnings: list[str] = field(default_factory=list)


# A known key of the wrong type makes the whole envelope void; `context`, `context_files` and the updates have rules of their own.
TYPES: dict[str, type] = {"version": int, "decision": str, "halt": bool, "reason": str}
NESTED = "hookSpecificOutput"
BESIDE = ("decision", "halt", "reason", "context", "context_files", "updated_input", "updated_prompt")
"""Keys that are read only where nothing is nested."""
NESTED_TYPES: dict[str, type] = dict.fromkeys(
    ("permissiondecision", "permissiondecisionreason", "additionalcontext"), str
)
DECISIONS: dict[str, Literal["none", "allow", "deny"]] = {"allow": "allow", "deny": "deny", "": "none"}


def parse_output(stdout: str) -> CrushOutput:
    """Read a hook's output. What is no object says nothing; what looks like one and cannot be read says nothing either, and `warnings`
    tell why."""
    text = stdout.strip(common.BLANK)
    if not text.startswith("{"):
        return CrushOutput()
    value, wrong = common.parse_json(text)
    if wrong:
        return CrushOutput(warnings=[wrong])
    if NESTED in value:
        output = _nested(value[NESTED])
        beside = [key for key, item in value.items() if key.lower() in BESIDE and item]
        output.warnings += [f"`{key}` beside {NESTED} has no effect in Crush" for key in beside]
        return output
    fields, void = _known(value, TYPES)
    if void:
        return CrushOutput(warnings=[void])
    output = CrushOutput(
        halt=fields.get("halt", False), reason=fields.get("reason", ""), context=_context(fields.get("context"))
    )
    _decide(fields.get("decision", ""), output, "decision")
    _files(fields.get("context_files"), output)
    _prompt(fields.get("updated_prompt"), output)
    _patch(fields.get("updated_input"), output, unwrap=True)
    return output


def _nested(inner: object) -> CrushOutput:
    """Claude's shape: only what stands inside counts."""
    if not isinstance(inner, dict):
        return CrushOutput(warnings=[f"`{NESTED}` is no object"] if inner is not None else [])
    fields, void = _known(inner, NESTED_TYPES)
    if void:
        return CrushOutput(warnings=[f"{NESTED}: {void}"])
    output = CrushOutput(reason=fields.get("permissiondecisionreason", ""), context=fields.get("additionalcontext", ""))
    _decide(fields.get("permissiondecision", ""), output, "permissionDecision")
    _files(fields.get("contextfiles"), output)
    _patch(fields.get("updatedinput"), output, unwrap=False)
    return output


def _known(value: dict[str, Any], types: dict[str, type]) -> tuple[dict[str, Any], str]:
    """The values by small-letter keys, the last one of several spellings; and what makes them void. null is as good as nothing."""
    fields: dict[str, Any] = {}
    for key, item in value.items():
        kind = types.get(key.lower())
        if item is not None and kind is not None and type(item) is not kind:
            return {}, f"`{key}` has the wrong type, so nothing of the output counts"
        if item is not None or kind is None:
            fields[key.lower()] = item
    return fields, ""


def _decide(word: str, output: CrushOutput, key: str) -> None:
    if word.lower() in DECISIONS:
        output.decision = DECISIONS[word.lower()]
    else:
        output.warnings.append(f'`{key}` "{word}" means nothing to Crush (only allow and deny do)')


def _context(value: object) -> str:
    """A text as it is; of a list the texts, one a line; anything else is nothing."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or any(item is not None and not isinstance(item, str) for item in value):
        return ""
    return "\n".join(item for item in value if item)


def _files(value: object, output: CrushOutput) -> None:
    if value is None:
        return
    if not isinstance(value, list):
        output.warnings.append("context_files is no list and is left out")
        return
    for item in value:
        path = item.get("path") if isinstance(item, dict) else item
        if isinstance(path, str) and path:
            output.context_files.append(path)
        else:
            output.warnings.append(f"context_files: {item!r} is no path")


def _prompt(value: object, output: CrushOutput) -> None:
    if isinstance(value, str):
        output.updated_prompt = value
    elif value is not None:
        output.warnings.append("updated_prompt is no text and is left out")


def _patch(value: object, output: CrushOutput, *, unwrap: bool) -> None:
    """An object, or (`unwrap`) a text that holds one; the merge refuses anything else."""
    if value is None:
        return
    if unwrap and isinstance(value, str):
        inner, _ = common.parse_json(value)
        value = inner if isinstance(inner, dict) else value
    output.updated_input = value
