"""P1 to P19 of Crush's own tests, and the rest of its grammar of standard output."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cru.core.hooks.dialects.crush.output import CrushOutput, parse_output


def of(value: Any) -> CrushOutput:
    return parse_output(value if isinstance(value, str) else msgspec.json.encode(value).decode())


def nested(**inner: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": inner}


NONE = CrushOutput()
ALLOW, DENY = CrushOutput(decision="allow"), CrushOutput(decision="deny")


def made(**fields: Any) -> CrushOutput:
    return CrushOutput(**fields)


CASES: dict[str, tuple[Any, CrushOutput]] = {
    "P1 empty": ("", NONE),
    "P1 blank": (" \n\t", NONE),
    "P2": ({"decision": "allow", "context": "some context"}, made(decision="allow", context="some context")),
    "P3": ({"decision": "deny", "reason": "not allowed"}, made(decision="deny", reason="not allowed")),
    "P6": ({"version": 1, "decision": "allow"}, ALLOW),
    "P7": ({"version": 99, "decision": "deny", "reason": "future"}, made(decision="deny", reason="future")),
    "P8": ({"halt": True, "reason": "turn over"}, made(halt=True, reason="turn over")),
    "P9": ({"context": "one note"}, made(context="one note")),
    "P10": ({"context": ["first", "second"]}, made(context="first\nsecond")),
    "P11": ({"context": ["", "keep", ""]}, made(context="keep")),
    "P12": ({"context": None}, NONE),
    "P13": ({"updated_input": {"command": "ls"}}, made(updated_input={"command": "ls"})),
    "P14": ({"updated_input": '{"command": "ls"}'}, made(updated_input={"command": "ls"})),
    "P15": ({"decision": "allow", "updated_input": None}, ALLOW),
    "P16": (
        nested(hookEventName="PreToolUse", permissionDecision="allow", permissionDecisionReason="RTK auto-rewrite"),
        made(decision="allow", reason="RTK auto-rewrite"),
    ),
    "P17": (
        nested(permissionDecision="allow", updatedInput={"command": "rtk ls"}),
        made(decision="allow", updated_input={"command": "rtk ls"}),
    ),
    "P18": (
        nested(permissionDecision="deny", permissionDecisionReason="no"),
        made(decision="deny", reason="no"),
    ),
    "P19": (nested(), NONE),
    "plain text": ("all is well", NONE),
    "a list": ([{"decision": "deny"}], NONE),
    "null": ("null", NONE),
    "a text": ('"deny"', NONE),
    "byte order mark": ('\ufeff{"decision":"deny"}', DENY),
    "large letters": ({"decision": "DENY"}, DENY),
    "null decision": ({"decision": None, "reason": None, "halt": None, "version": None}, NONE),
    "unknown keys": ({"decision": "deny", "continue": True, "systemMessage": "x"}, DENY),
    "keys in any case": ({"Decision": "deny", "REASON": "no"}, made(decision="deny", reason="no")),
    "the last spelling wins": ('{"decision":"allow","Decision":"deny"}', DENY),
    "the last duplicate wins": ('{"decision":"allow","decision":"deny"}', DENY),
    "context is not trimmed": ({"context": " x\n"}, made(context=" x\n")),
    "null in a list of context": ({"context": ["a", None, "b"]}, made(context="a\nb")),
    "number in a list of context": ({"decision": "deny", "context": ["a", 1]}, DENY),
    "context is an object": ({"decision": "deny", "context": {"a": 1}}, DENY),
    "siblings that nobody reads anyway": ({**nested(), "continue": True, "systemMessage": "x", "decision": None}, NONE),
    "nested in large letters": (nested(permissionDecision="Allow"), ALLOW),
    "nested context": (nested(additionalContext="note"), made(context="note")),
    "nested text is not unwrapped": (nested(updatedInput='{"a":1}'), made(updated_input='{"a":1}')),
    "nested files": (nested(contextFiles=["a.md"]), made(context_files=["a.md"])),
    "nested key in another case": ({"hookspecificoutput": {"permissionDecision": "deny"}}, NONE),
    "files": ({"context_files": ["a.md", {"path": "b.md", "reason": "x"}]}, made(context_files=["a.md", "b.md"])),
    "half a character": (r'{"decision":"deny","reason":"\udc80 no"}', made(decision="deny", reason="\ufffd no")),
    "both halves": (
        r'{"decision":"deny","reason":"\ud83d\ude00\ud800"}',
        made(decision="deny", reason="\U0001f600\ufffd"),
    ),
    "prompt": ({"updated_prompt": ""}, made(updated_prompt="")),
}


@pytest.mark.parametrize("case", CASES)
def test_p_what_an_output_says(case: str) -> None:
    output, expected = CASES[case]
    assert of(output) == expected


# What is left out, and what a person reads of it.
ODD: dict[str, tuple[Any, CrushOutput, str]] = {
    "P4": ("{bad json}", NONE, "not JSON"),
    "P5": ({"decision": "maybe"}, NONE, '`decision` "maybe" means nothing to Crush'),
    "half a character and more": (r'{"decision":"deny","reason":"\udc80', NONE, "not JSON"),
    "no number": (r'{"decision":"deny","reason":"\udc80","x":NaN}', NONE, "not JSON"),
    "two documents": ('{"decision":"deny"}{}', NONE, "not JSON"),
    "text behind it": ('{"decision":"deny"} done', NONE, "not JSON"),
    "Claude's old words": ({"decision": "block", "reason": "r"}, made(reason="r"), '"block"'),
    "nested ask": (nested(permissionDecision="ask"), NONE, '"ask"'),
    "nested defer": (nested(permissionDecision="defer"), NONE, '"defer"'),
    "siblings of the nested shape": (
        {**nested(additionalContext="x"), "decision": "deny"},
        made(context="x"),
        "`decision` beside hookSpecificOutput",
    ),
    "a halt beside it": ({**nested(), "Halt": True}, NONE, "`Halt` beside hookSpecificOutput has no effect in Crush"),
    "nested null": ({"hookSpecificOutput": None, "decision": "deny"}, NONE, "`decision` beside hookSpecificOutput"),
    "nested text": ({"hookSpecificOutput": "deny"}, NONE, "no object"),
    "halt": ({"decision": "deny", "halt": "yes"}, NONE, "`halt` has the wrong type"),
    "decision": ({"decision": 5, "context": "x"}, NONE, "`decision`"),
    "version text": ({"version": "1", "decision": "deny"}, NONE, "`version`"),
    "version fraction": ({"version": 1.5, "decision": "deny"}, NONE, "`version`"),
    "version truth": ({"version": True, "decision": "deny"}, NONE, "`version`"),
    "reason": ({"reason": ["a"], "decision": "deny"}, NONE, "`reason`"),
    "wrong in another case": ({"Halt": 1, "decision": "deny"}, NONE, "`Halt`"),
    "nested reason": (nested(permissionDecision="deny", permissionDecisionReason=1), NONE, "permissionDecisionReason"),
    "files are no list": ({"decision": "deny", "context_files": "a.md"}, DENY, "no list"),
    "a file is no path": ({"context_files": [1, "a.md", {}]}, made(context_files=["a.md"]), "no path"),
    "prompt is no text": ({"decision": "deny", "updated_prompt": 5}, DENY, "updated_prompt is no text"),
    "too deep": ("{" * 1 + '"context":' + "[" * 100_000, NONE, "not JSON"),
}


@pytest.mark.parametrize("case", ODD)
def test_p_what_is_left_out_is_said(case: str) -> None:
    output, expected, told = ODD[case]
    got = of(output)
    assert told in "; ".join(got.warnings)
    assert msgspec.structs.replace(got, warnings=[]) == expected
