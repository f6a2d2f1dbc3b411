"""`cru trace`: what happened, what was sent, what would be sent."""

from __future__ import annotations

import os

import msgspec
import pytest
from tests.kit import Call, HomeDir, Reply, Server, Status, cru, pty, server


def two_rounds(home: HomeDir) -> Server:
    with server([Reply("looking", calls=[Call("ls", {})]), Reply("done")]) as model:
        home.configure(url=model.url)
        assert cru("hi", home=home).code == 0
    return model


def test_nothing_recorded_is_said(home: HomeDir) -> None:
    run = cru("trace", home=home)
    assert (run.code, run.out) == (0, "no turn is recorded in the context default\n")
    assert not home.context().exists()


def test_a_turn_is_told_in_order_with_times(home: HomeDir) -> None:
    two_rounds(home)
    out = cru("trace", home=home).out
    name = home.lines("default", "trace.jsonl")[0]["turn"]
    assert (
        out.splitlines()[0]
        == f"turn 1 of 1 ({name}): 2 requests, done; 200 tokens in (0 cached), 20 out, cost not known"
    )
    assert cru("trace", "1", home=home).out == out == cru("trace", "--turn", "1", home=home).out
    for words in (("one",), ("1", "2")):
        run = cru("trace", *words, home=home)
        assert run.code == 2 and "as a prompt: cru -- trace" in run.err
    texts = [
        "preparing",
        "calling",
        "request    1:",
        "reply      1:",
        "tooling",
        "request    2:",
        "end        done",
    ]
    places = [out.index(text) for text in texts]
    assert places == sorted(places)


def test_a_refused_change_is_shown_as_refused(home: HomeDir) -> None:
    (home.cru / "plugins").mkdir(parents=True)
    (home.cru / "plugins" / "mine.lua").write_text(
        'cru.on("turn:complete", function() return {response = "other"} end)'
    )
    with server([Reply("done")]) as model:
        home.configure(url=model.url)
        assert cru("hi", home=home).code == 0
    out = cru("trace", home=home).out
    assert "refused: `response` cannot be changed" in out and "set response" not in out


def test_every_request_is_shown_as_it_was_sent(home: HomeDir) -> None:
    model = two_rounds(home)
    for number, request in enumerate(model.requests, 1):
        run = cru("trace", "--request", str(number), "--json", home=home)
        assert run.code == 0 and run.out.encode() == request.raw + b"\n"
    shown = cru("trace", "--request", "2", home=home)
    assert "(as sent)" in shown.out and '"looking"' in shown.out


def test_a_request_that_was_not_made_is_an_error(home: HomeDir) -> None:
    two_rounds(home)
    for number in ("3", "0", "-1"):
        run = cru("trace", "--request", number, home=home)
        assert run.code == 1 and f"there is no request {number}" in run.err
    assert cru("trace", "--request", "x", home=home).code == 2
    run = cru("trace", "--request", home=home)
    assert run.code == 2 and "--request needs a value" in run.err


def test_turns_are_chosen_from_either_end(home: HomeDir) -> None:
    with server([Status(400), Reply("two")]) as model:
        home.configure(url=model.url)
        cru("one", home=home)
        cru("two", home=home)
    assert "error" in cru("trace", "--turn", "1", home=home).out.splitlines()[0]
    assert "done" in cru("trace", "--turn", "-1", home=home).out.splitlines()[0]
    run = cru("trace", "--turn", "3", home=home)
    assert run.code == 1 and "there is no turn 3" in run.err


def test_a_compaction_by_hand_is_no_turn(home: HomeDir) -> None:
    with server([Reply("one"), Reply("two"), Reply("summary"), Reply("three")]) as model:
        home.configure(url=model.url)
        for words in ("1", "2", "-z"):
            assert cru(words, home=home).code == 0
        last = cru("trace", home=home)
        assert last.out.splitlines()[0] == "compaction: 1 request outside of a turn (3 of 3)"
        assert "not finished" not in last.out and "reply" in last.out and last.err == ""
        assert cru("3", home=home).code == 0
        assert cru("trace", home=home).out.startswith("turn 4 of 4 (")
        sent = cru("trace", "--turn", "3", "--request", "1", "--json", home=home)
    assert sent.code == 0 and sent.out.encode() == model.requests[2].raw + b"\n"


def test_long_lines_of_counts_are_wrapped(home: HomeDir) -> None:
    two_rounds(home)
    lines = cru("trace", home=home).out.splitlines()
    at = next(n for n, line in enumerate(lines) if "ms  events " in line)
    rest = [line for line in lines[at + 1 :] if " ms  " not in line]
    assert rest and all(line.startswith(" " * 26) for line in rest)
    assert max(len(line) for line in (lines[at], *rest)) <= 100


def test_next_tells_sections_tools_and_messages_with_origin_and_size(home: HomeDir) -> None:
    two_rounds(home)
    cru("-y", "Speak in rhymes.", home=home)
    run = cru("trace", "--next", "--json", home=home)
    rows = msgspec.json.decode(run.out)
    assert {"section", "tool", "message"} <= {row["kind"] for row in rows}
    assert all(row["bytes"] > 0 and row["origin"] for row in rows if row["kind"] != "message")
    assert any(row["changed"] for row in rows if row["kind"] == "section")
    text = cru("trace", "--next", home=home).out
    assert "changed since the last request" in text and "in all, before your prompt" in text


def test_next_asks_nobody_and_changes_nothing(home: HomeDir) -> None:
    two_rounds(home)
    before = {p: p.read_bytes() for p in home.cru.rglob("*") if p.is_file()}
    assert cru("trace", "--next", home=home).code == 0
    assert {p: p.read_bytes() for p in home.cru.rglob("*") if p.is_file()} == before


def test_torn_lines_are_reported_and_skipped(home: HomeDir) -> None:
    two_rounds(home)
    with (home.context() / "trace.jsonl").open("ab") as file:
        file.write(b'{"k": "torn')
    run = cru("trace", home=home)
    assert run.code == 0 and "2 requests, done" in run.out and "trace.jsonl:" in run.err and "(skipped)" in run.err


DEEP = '{"k":"reply","run":"RUN","turn":"TURN","a":' + "[" * 100_000
BAD_LINES = (
    "null",
    '["RUN","TURN"]',
    '"RUN"',
    '{"seq":1,"run":"RUN","turn":"TURN","event":"x',
    DEEP,
    '{"k":"leg","v":1,"turn":"TURN","run":"RUN"}',
    '{"k":"leg","v":1,"turn":"other"}',
    '{"k":"leg","v":1,"turn":"torn","ref":"',
    '{"k":"reply","n":1,"turn":"TURN","run":"RUN","time":"soon"}',
    '{"k":"end","turn":"TURN","run":"RUN","counts":[]}',
    '{"k":"states","turn":"TURN","run":"RUN","at":5}',
)


@pytest.mark.sample(1)
@pytest.mark.parametrize("file", ["trace.jsonl", "journal.jsonl"])
def test_lines_that_are_no_records_are_told_once_and_passed_over(home: HomeDir, file: str) -> None:
    (home.cru / "plugins").mkdir(parents=True)
    (home.cru / "plugins" / "mine.lua").write_text('cru.on("turn:complete", function() end)')
    two_rounds(home)
    whole = [cru(*words, home=home) for words in (["trace"], ["hooks", "why"])]
    leg = home.lines("default", "trace.jsonl")[0]
    path = home.context() / file
    lines = path.read_text().splitlines()
    bad = [line.replace("RUN", leg["run"]).replace("TURN", leg["turn"]) for line in BAD_LINES]
    path.write_text("\n".join([*bad, *lines, bad[3]]))
    for words, before in zip((["trace"], ["hooks", "why"]), whole, strict=True):
        (home.context() / ".reported").unlink(missing_ok=True)
        first, again = cru(*words, home=home), cru(*words, home=home)
        assert (first.code, first.out) == (0, before.out)
        assert (again.code, again.out, again.err) == (0, before.out, "")
        numbers = {line.removeprefix(f"cru: {path}:").partition(":")[0] for line in first.err.splitlines()}
        assert numbers >= {str(number) for number in range(1, 6)} | {str(len(bad) + len(lines) + 1)}
        assert "Traceback" not in first.err


@pytest.mark.parametrize("file", ["trace.jsonl", "journal.jsonl"])
def test_a_pipe_in_place_of_records_is_an_error_at_once(home: HomeDir, file: str) -> None:
    two_rounds(home)
    (home.context() / file).unlink()
    os.mkfifo(home.context() / file)
    run = cru("trace", home=home)
    assert run.code == 1
    assert run.err.startswith(f"cru: cannot read {home.context() / file}: it is not a regular file")


def test_json_moments_are_one_object_a_line(home: HomeDir) -> None:
    two_rounds(home)
    lines = [msgspec.json.decode(line) for line in cru("trace", "--json", home=home).out.splitlines()]
    assert [line["what"] for line in lines if line["what"] in ("request", "reply")] == ["request", "reply"] * 2


def test_what_handlers_and_servers_said_cannot_write_to_the_terminal(home: HomeDir) -> None:
    with server([Status(400, body="bad \x9b2J\nthing")]) as model:
        home.configure(url=model.url)
        cru("hi", home=home)
    with pty("trace", home=home) as terminal:
        assert terminal.wait() == 0
    assert "\x9b" not in terminal.text and "error" in terminal.text
