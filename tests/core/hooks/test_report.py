"""The sentences of `cru hooks why`, and names in anybody's words."""

from __future__ import annotations

from pathlib import Path

import pytest

from cru.core.events.answers import Answer, Change
from cru.core.events.journal import HandlerRecord, JournalLine
from cru.core.hooks.dialects import load_dialects
from cru.core.hooks.model.entry import HookEntry, HookSource
from cru.core.hooks.model.status import Activation, EntryStatus, LoadedHooks
from cru.core.hooks.records import FiringRecord
from cru.core.hooks.report import query, wording

DIALECTS = load_dialects(["crush", "claude"])


def entry(id: str, dialect: str = "claude", **more: str) -> HookEntry:
    source = HookSource(dialect, "user", Path("/nowhere/settings.json"), "")
    given = {"event": "PreToolUse", "command": "true", **more}
    return HookEntry(id=id, dialect=dialect, source=source, line=1, **given)  # type: ignore[arg-type]


LOADED = LoadedHooks(
    [
        EntryStatus(entry("claude-1", name="guard"), Activation.ACTIVE),
        EntryStatus(entry("crush-2", "crush", name="rtk"), Activation.ACTIVE),
    ]
)
DENY, ASK, ALLOW = Answer(decision="deny", reason="no"), Answer(decision="ask"), Answer(decision="allow")
REWRITE = Answer(changes=(Change("args", "set", {}),))


def line(*answers: tuple[str, Answer], decision: str = "none", reason: str = "", changed: bool = False) -> JournalLine:
    heard = tuple(HandlerRecord(owner, answer=answer) for owner, answer in answers)
    fields: dict[str, object] = {"args": {}} if changed else {}
    return JournalLine(
        1, 0.0, "tool:before_call", "s", "r", heard=heard, decision=decision, reason=reason, changed=fields
    )


@pytest.mark.parametrize(
    ("dispatch", "said"),
    [
        (line(("hook claude-1", Answer())), ["nobody decided"]),
        (line(("hook claude-1", DENY), decision="deny", reason="no"), ["denied by guard (claude-1): no"]),
        (
            line(("hook claude-1", ALLOW), ("hook crush-2", DENY), decision="deny", reason="no"),
            [
                "denied by rtk (crush-2): no",
                "guard (claude-1) allowed in vain: halt counts before deny, that before ask, that before allow",
            ],
        ),
        (line(("hook claude-1", ASK), decision="ask"), ["a person is to be asked, says guard (claude-1)"]),
        (
            line(("hook claude-1", ALLOW), ("mine", REWRITE), changed=True),
            [
                "nobody decided in the end: the leave of guard (claude-1) is void, since the call was changed after it",
                "args changed by mine",
            ],
        ),
        (
            line(("mine", REWRITE), ("hook crush-2", REWRITE), changed=True),
            ["nobody decided", "args changed by mine, then rtk (crush-2)"],
        ),
        (line(("hook gone-3", Answer(halt=True)), decision="halt"), ["halted by hook gone-3"]),
    ],
)
def test_what_came_of_several_answers(dispatch: JournalLine, said: list[str]) -> None:
    assert list(wording.describe_outcome(dispatch, LOADED)) == said


@pytest.mark.parametrize(
    ("dialect", "matcher", "subject", "said"),
    [
        ("claude", "Wriet", "write", "its matcher `Wriet` does not fit write (claude: Write); did you mean `Write`?"),
        ("claude", "BASH", "bash", "its matcher `BASH` does not fit bash (claude: Bash); did you mean `Bash`?"),
        ("crush", "^bash$", "read", "its matcher `^bash$` does not fit read (crush: view)"),
        ("crush", "^veiw$", "read", "its matcher `^veiw$` does not fit read (crush: view); did you mean `view`?"),
        (
            "claude",
            "Edit|Wirte",
            "write",
            "its matcher `Edit|Wirte` does not fit write (claude: Write); did you mean `Write`?",
        ),
    ],
)
def test_why_a_matcher_does_not_fit(dialect: str, matcher: str, subject: str, said: str) -> None:
    one = entry("x", dialect, matcher=matcher)
    assert wording.describe_mismatch(one, DIALECTS[dialect], "tool:before_call", [subject]) == said


def test_a_condition_that_does_not_fit_is_told_apart_from_a_matcher(tmp_path: Path) -> None:
    one = entry("x", matcher="Bash", condition="Bash(git *)")
    said = wording.describe_mismatch(one, DIALECTS["claude"], "tool:before_call", ["bash"])
    assert said == "its `if` Bash(git *) does not fit the call"


@pytest.mark.parametrize("word", ["PreToolUse", "pre_tool_use", "pretooluse", "tool:before_call"])
def test_an_event_is_found_in_any_spelling(word: str) -> None:
    found = query.parse_query([word], DIALECTS)
    assert found.first == "tool:before_call" and found.tool == ""
    assert found.foreign >= {("crush", "PreToolUse"), ("claude", "PreToolUse")}


@pytest.mark.parametrize("word", ["Bash", "bash", "shell", "run_shell_command"])
def test_a_tool_is_found_by_its_name_in_any_system(word: str) -> None:
    assert query.parse_query([word], DIALECTS).tool == "bash"
    assert query.parse_query(["PreToolUse", word], DIALECTS).tool == "bash"


def test_tools_that_a_turn_called_and_those_of_servers_are_known_too() -> None:
    assert query.parse_query(["roll"], DIALECTS, ["roll"]).tool == "roll"
    assert query.parse_query(["mcp__db__query"], DIALECTS).tool == "mcp__db__query"


@pytest.mark.parametrize(
    ("word", "hint"), [("PreTolUse", "did you mean `PreToolUse`?"), ("bsah", "did you mean `bash`?")]
)
def test_an_unknown_word_names_the_closest_one(word: str, hint: str) -> None:
    with pytest.raises(query.NoSuchName) as raised:
        query.parse_query([word], DIALECTS)
    assert raised.value.hint == hint


@pytest.mark.parametrize(
    ("fired", "said"),
    [
        ({"exit": 0}, "ran 12 ms, exit 0: said nothing"),
        ({"exit": 2, "decision": "deny", "reason": "no"}, "ran 12 ms, exit 2: denied: no"),
        ({"exit": 0, "did": ("args", "context")}, "ran 12 ms, exit 0: changed args; gave context"),
        ({"exit": 1, "failed": "exit status 1"}, "ran 12 ms, exit 1: failed (exit status 1), so it has no say"),
        ({"timed_out": True, "failed": "no answer within 1 s", "decision": "deny", "reason": "r"},
         "ran 12 ms, timed out: failed (no answer within 1 s), so it denied"),
        ({"error": "boom", "failed": "boom"}, "ran 12 ms: failed (boom), so it has no say"),
        ({"error": "boom", "failed": "boom", "decision": "deny", "did": ("context",)},
         "ran 12 ms: failed (boom), so it denied; gave context"),
        ({"error": "cancelled", "failed": "cancelled"}, "ran 12 ms: was running when the run was interrupted"),
        ({"exit": 0, "warning": "the output is no JSON object"}, "ran 12 ms, exit 0: said nothing; odd: the output is no JSON object"),
        ({"exit": 0, "beside": True}, "ran 12 ms, exit 0, beside the session: said nothing"),
    ],
)  # fmt: skip
def test_one_firing_in_a_sentence(fired: dict[str, object], said: str) -> None:
    made = FiringRecord(0.0, "r", 1, "x", "PreToolUse", "tool:before_call", "guard", "f:1", ms=12.3, **fired)  # type: ignore[arg-type]
    assert wording.describe_firing(made) == said


def test_a_slow_hook_of_a_tool_event_is_named() -> None:
    made = FiringRecord(0.0, "r", 1, "x", "PreToolUse", "tool:before_call", "guard", "f:1", ms=251.0, exit=0)
    assert "slow: the call waited for it" in wording.describe_firing(made)
