"""What hooks did, on disk: one line a firing, why not in the journal, secrets hidden where they are shown."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import msgspec
import pytest
from tests.core.hooks.crush_world import Made, config
from tests.kit.closing import closed_later

from cru.core.conversations.line_file import LineFile, make_redactor
from cru.core.events.bus import Bus
from cru.core.events.journal import JournalLine
from cru.core.events.payloads import ToolBeforeCall
from cru.core.events.stamp import Event, Origin
from cru.core.hooks import records
from cru.core.hooks.model.mapping import Matching
from cru.core.hooks.model.result import HookRun
from cru.core.hooks.records import RECORDED_BYTES, FiringRecord, LoadRecord, masked_json
from cru.core.tools.secret_variables import masked

CALL = ToolBeforeCall("bash", {"command": "ls"}, "call_1")


class Sink:
    def __init__(self) -> None:
        self.lines: list[JournalLine] = []

    def write(self, line: JournalLine) -> None:
        self.lines.append(line)


def fire(hooks: Made, times: int = 1, call: ToolBeforeCall = CALL) -> list[JournalLine]:
    """The journal of so many calls."""
    sink = Sink()

    async def work() -> None:
        bus = Bus(Origin("sess", "run"), sink=sink)
        hooks.register(bus)
        for _ in range(times):
            await bus.dispatch(call)
        await hooks.close()

    asyncio.run(work())
    return sink.lines


def lines(path: Path) -> list[records.HookLogLine]:
    return list(records.read_lines(path))[::-1]


def fired(path: Path) -> list[FiringRecord]:
    return [one for one in lines(path) if isinstance(one, FiringRecord)]


def test_a_firing_is_one_private_line_with_all_that_went_in_and_came_out(tmp_path: Path) -> None:
    text = config({"name": "guard", "command": "echo no >&2; cat; exit 2"})
    fire(Made(tmp_path, text))
    (one,) = fired(tmp_path)
    assert (one.run, one.seq, one.event, one.ours, one.subject) == ("run", 1, "PreToolUse", "tool:before_call", "bash")
    assert (one.exit, one.decision, one.reason, one.stderr, one.label) == (2, "deny", "no", "no\n", "guard")
    assert one.stdout == one.stdin and msgspec.json.decode(one.stdin)["tool_input"] == {"command": "ls"}
    assert one.where == f"{tmp_path}/crush.json:1" and one.ms > 0 and not one.cut
    assert stat.S_IMODE((tmp_path / "hooks.jsonl").stat().st_mode) == 0o600


def test_why_a_hook_did_not_fire_stands_in_the_journal_and_only_there(tmp_path: Path) -> None:
    hooks = Made(
        tmp_path, config({"matcher": "^view$", "command": "exit 2"}, {"command": "true"}), {"true": HookRun(0)}
    )
    (line,) = fire(hooks)
    skipped, ran = line.heard
    assert skipped.skipped == "does not match bash" and skipped.answer.note == "" and not ran.skipped
    assert [one.label for one in fired(tmp_path)] == ["true"]


def test_a_hook_that_does_not_fire_has_no_part_in_an_outcome(tmp_path: Path) -> None:
    hooks = Made(tmp_path, config({"matcher": "^view$", "command": "exit 2"}), {})

    async def work() -> str:
        bus = Bus(Origin("sess", "run"))
        hooks.register(bus)
        return (await bus.dispatch(CALL)).by

    assert asyncio.run(work()) == ""


def test_the_second_of_two_alike_names_the_first(tmp_path: Path) -> None:
    hooks = Made(
        tmp_path, config({"command": "true", "name": "a"}, {"command": "true", "name": "b"}), {"true": HookRun(0)}
    )
    (line,) = fire(hooks)
    first = hooks.loaded.known[0].entry.id
    assert [one.skipped for one in line.heard if one.skipped] == [f"the same command as {first}"]
    assert [one.label for one in fired(tmp_path)] == ["a"]


def test_what_cannot_fire_is_recorded_once_a_session(tmp_path: Path) -> None:
    text = msgspec.json.encode(
        {"hooks": {"PreToolUse": [{"command": "true"}], "Later": [{"command": "true"}]}}
    ).decode()
    hooks = Made(tmp_path, text, {"true": HookRun(0)})
    fire(hooks, 3)
    found = [one for one in lines(tmp_path) if isinstance(one, LoadRecord)]
    idle = hooks.loaded.known[1]
    assert [(one.active, one.idle) for one in found] == [(1, {idle.entry.id: ("no moment", "")})]


def test_a_cancelled_hook_is_recorded_too(tmp_path: Path) -> None:
    hooks = Made(tmp_path, config({"command": "sleep 30"}))

    async def work() -> None:
        bus = Bus(Origin("sess", "run"))
        hooks.register(bus)
        task = asyncio.ensure_future(bus.dispatch(CALL))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    (one,) = fired(tmp_path)
    assert (one.exit, one.error, one.failed) == (None, "cancelled", "cancelled") and one.stdin


def test_known_keys_never_reach_the_disk(tmp_path: Path) -> None:
    hooks = Made(tmp_path, config({"command": "cat"}))
    hooks._log = closed_later(LineFile(tmp_path / "hooks.jsonl", redact=make_redactor(["sesame-open-1"])))
    fire(hooks, call=ToolBeforeCall("bash", {"command": "echo sesame-open-1"}, "call_1"))
    assert b"sesame" not in (tmp_path / "hooks.jsonl").read_bytes()
    assert "echo [secret]" in fired(tmp_path)[0].stdout


def test_payloads_are_whole_up_to_a_mebibyte(tmp_path: Path) -> None:
    for size, cut in ((RECORDED_BYTES // 2, False), (RECORDED_BYTES + 1, True)):
        path = tmp_path / str(size)
        path.mkdir()
        fire(Made(path, config({"command": "true"}), {"true": HookRun(0, stdout="x" * size)}))
        (one,) = fired(path)
        assert (len(one.stdout), one.cut) == (min(size, RECORDED_BYTES), cut)


def test_reading_goes_over_rotated_files_newest_first_and_past_torn_lines(tmp_path: Path) -> None:
    made = [LoadRecord(float(n), "run") for n in range(4)]
    encoded = [records.encode(one) for one in made]
    (tmp_path / "hooks.jsonl.1").write_bytes(encoded[0] + b"\n" + encoded[1] + b"\n")
    (tmp_path / "hooks.jsonl").write_bytes(
        encoded[2] + b'\n{"k":"fired","ti\n\xff\n{"k":"other"}\n' + encoded[3] + b"\n"
    )
    assert [one.time for one in records.read_lines(tmp_path)] == [3.0, 2.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sk-ant-REDACTED", "sk-[hidden]"),
        ("ghp_abcdefgh12345678", "ghp_[hidden]"),
        ("AKIAIOSFODNN7EXAMPLE", "AKIA[hidden]"),
        ("Authorization: Bearer abc.def.ghi-jkl", "Authorization: Bearer [hidden]"),
        ("password=hunter22 next", "password=[hidden] next"),
        ('{"command":"x","password": "hunter22"}', '{"command":"x","password": "[hidden]"}'),
        (r"{\"api_key\": \"hunter22\"}", r"{\"api_key\": \"[hidden]\"}"),
        ("a task-list of 12", "a task-list of 12"),
        ("the bearer of news", "the bearer of news"),
        ("password= ", "password= "),
    ],
)
def test_what_looks_like_a_secret_is_hidden_when_shown(text: str, shown: str) -> None:
    assert masked(text) == shown


def test_masked_json_is_json() -> None:
    given = {"token": 12345, "text": 'token: "abcdef"', "list": ["password=abc"]}
    assert msgspec.json.decode(masked_json(given)) == {
        "token": 12345, "text": 'token: "[hidden]"', "list": ["password=[hidden]"],
    }  # fmt: skip


@pytest.mark.parametrize(("on_error", "decision"), [("", "none"), ("deny", "deny"), ("ask", "ask")])
def test_a_fault_of_a_dialect_is_a_failed_hook(tmp_path: Path, on_error: str, decision: str) -> None:
    """Whatever raises while the payload is made or the output read: it is told, and `on_error` counts."""
    hooks = Made(tmp_path, config({"command": "true"}), {"true": HookRun(0)})
    known = hooks.loaded.known[0]
    known.entry = msgspec.structs.replace(known.entry, on_error=on_error)

    def broken(event: Event, about: object) -> dict[str, object]:
        raise OSError("the transcript cannot be written")

    dialect = hooks._dialects["crush"]
    row = dialect.events["PreToolUse"][0]
    row = msgspec.structs.replace(row, fields=broken)
    hooks._dialects = {"crush": msgspec.structs.replace(dialect, events={"PreToolUse": (row,)})}
    (line,) = fire(hooks)
    assert line.decision == decision
    assert fired(tmp_path)[0].failed == "OSError: the transcript cannot be written"


def test_a_matcher_that_raises_is_a_failed_hook(tmp_path: Path) -> None:
    hooks = Made(tmp_path, config({"command": "true"}), {"true": HookRun(0)})
    known = hooks.loaded.known[0]
    known.entry = msgspec.structs.replace(known.entry, on_error="deny")

    def raises(*_: object) -> bool:
        raise RecursionError("too deep")

    dialect = hooks._dialects["crush"]
    hooks._dialects = {"crush": msgspec.structs.replace(dialect, matching=Matching(matcher_fits=raises))}
    (line,) = fire(hooks)
    assert line.decision == "deny" and "its matcher cannot be used" in line.reason
