"""Where a refusal begins that nobody reads: a table of outputs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.kit.growth import assert_linear

from cru.core.events.answers import PASS, Answer, Inject
from cru.core.plugins.unread_refusals import LONGEST, find_unread_refusal

DENY = '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}}'
# case: (output, what is found; "" = nothing)
OUTPUTS: dict[str, tuple[str, str]] = {
    "at the top level": ('{"permissionDecision": "deny"}', '`permissionDecision`: "deny"'),
    "another case": ('{"hookSpecificOutput": {"permissionDecision": "Deny"}}', '`permissionDecision`: "Deny"'),
    "another spelling": ('{"permission_decision": "deny"}', '`permission_decision`: "deny"'),
    "another spelling of what holds it": ('{"hook_specific_output": {"permission-decision": "DENY"}}', '`permission-decision`: "DENY"'),
    "ask": ('{"permissionDecision": "ask"}', '`permissionDecision`: "ask"'),
    "another word": ('{"decision": "blocked"}', '`decision`: "blocked"'),
    "another key": ('{"verdict": "reject"}', '`verdict`: "reject"'),
    "a flag": ('{"continue": false}', "`continue`: false"),
    "a flag as text": ('{"continue": "false"}', '`continue`: "false"'),
    "a flag of other systems": ('{"cancel": true, "reason": "x"}', "`cancel`: true"),
    "of a prompt hook": ('{"ok": false, "reason": "x"}', "`ok`: false"),
    "of a question": ('{"hookSpecificOutput": {"decision": {"behavior": "deny"}}}', '`behavior`: "deny"'),
    "a list": ('[{"decision": "block"}]', '`decision`: "block"'),
    "a list in the object": ('{"results": [{"decision": "block"}]}', '`decision`: "block"'),
    "noise before it": (f"nvm: using node 20\n{DENY}", '`permissionDecision`: "deny"'),
    "noise before it, on several lines": ('welcome\n{\n  "decision": "block",\n  "reason": "x"\n}\n', '`decision`: "block"'),
    "noise behind it": ('{"decision": "block"}\ndone', '`decision`: "block"'),
    "two objects": ('{"a": 1}\n{"decision": "deny"}', '`decision`: "deny"'),
    "ANSI codes": ('\x1b[32m{"decision": \x1b[1m"deny"}\x1b[0m', '`decision`: "deny"'),
    "a title": ('\x1b]0;guard\x07{"decision": "deny"}', '`decision`: "deny"'),
    "a code fence": ('```json\n{"decision": "deny"}\n```', '`decision`: "deny"'),
    "JSON in a text of JSON": ('"{\\"decision\\": \\"deny\\"}"', '`decision`: "deny"'),
    "behind many objects": ('{"a": 1}\n' * 500 + '{"decision": "deny"}', '`decision`: "deny"'),
    "behind many braces": ("{x}\n" * 500 + '{"decision": "deny"}', "`decision`: deny"),
    "a comma too many": ('{"decision": "deny",}', "`decision`: deny"),
    "words of Python": ("{'decision': 'deny', 'quiet': True}", "`decision`: deny"),
    "a flag of Python": ("{'continue': False}", "`continue`: False"),
    "cut off": ('{"decision": "deny", "reason": "bec', "`decision`: deny"),
    "a line end in a text": ('{"decision": "deny", "reason": "a\nb"}', '`decision`: "deny"'),
    "UTF-16": ('{"decision": "deny"}'.encode("utf-16").decode(errors="replace"), '`decision`: "deny"'),
    "nothing": ("", ""),
    "a line of a log": ("checked: nothing to deny here, decision: allow", ""),
    "a word alone": ("deny", ""),
    "a sentence": ("decision: deny the next one", ""),
    "a log of JSON": ('{"level": "info", "msg": "deny list loaded", "denied": 0}', ""),
    "a leave": ('{"decision": "approve"}', ""),
    "a leave elsewhere": ('{"permissionDecision": "allow"}', ""),
    "flags that let it be": ('{"continue": true, "block": false, "denied": false}', ""),
    "a reason alone": ('{"reason": "deny"}', ""),
    "arguments of the call": ('{"hookSpecificOutput": {"updatedInput": {"decision": "deny", "cancel": true}}}', ""),
    "rules for later calls": ('{"decision": {"behavior": "allow", "updatedPermissions": [{"behavior": "deny"}]}}', ""),
    "context about hooks": ('{"additionalContext": "say {\\"decision\\": \\"deny\\"}"}', ""),
}  # fmt: skip


@pytest.mark.parametrize("case", OUTPUTS)
def test_what_refuses(case: str) -> None:
    output, expected = OUTPUTS[case]
    assert find_unread_refusal(output, PASS) == expected


# case: (text where text counts, whether it was meant as an answer)
PROMPTS = {
    "noise before it": ('hello\n{"decision": "block"}', True),
    "noise behind it": ('{"decision": "block"}\nhello', True),
    "a fence": ('hello\n```json\n{"decision": "block"}\n```\n', True),
    "an example within a text": ('Hooks print\n{"decision": "block"}\nto refuse.', False),
    "code": ("x = {'decision': 'block'}", False),
}


@pytest.mark.parametrize("case", PROMPTS)
def test_where_text_is_context(case: str) -> None:
    output, is_answer = PROMPTS[case]
    assert bool(find_unread_refusal(output, PASS, is_text_legal=True)) is is_answer


@pytest.mark.parametrize(
    "answer",
    [Answer(decision="deny"), Answer(decision="ask"), Answer(halt=True, decision="deny"), Answer(inject=Inject("x"))],
)
def test_what_was_read_as_a_refusal_is_read(answer: Answer) -> None:
    assert find_unread_refusal('{"decision": "deny"}', answer) == ""


def test_a_leave_does_not_hide_a_refusal() -> None:
    assert find_unread_refusal('{"permissionDecision": "deny"}', Answer(decision="allow"))


@pytest.mark.parametrize("piece", ["{", '{"a":', "[{", '{"a": 1}', '"a": b, ', "\x1b[", '{"a": "', "```"])
def test_hostile_outputs_cost_no_more_than_their_length(piece: str) -> None:
    def look(size: int) -> Callable[[], object]:
        text = piece * (size // len(piece))
        return lambda: find_unread_refusal(text, PASS)

    assert_linear(look, LONGEST)
