"""`-b` and `-B`: contexts act on what lies in their inboxes."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.kit import Call, Hang, HomeDir, Received, Reply, Step, cru, server, start
from tests.kit.scripts import cru_word

MARK = "have come from other contexts"


def letter(home: HomeDir, to: str, content: str, sender: str = "me") -> None:
    folder = home.context(to)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "inbox.jsonl").open("ab") as file:
        line = {"id": "1", "timestamp": 1_700_000_000, "from": sender, "to": to, "content": content}
        file.write(msgspec.json.encode(line) + b"\n")


def last(request: Received) -> str:
    return str(request.body["messages"][-1]["content"])


def answer(request: Received) -> Step:
    return Reply(f"done: {last(request).split('] ')[1].splitlines()[0]}")


def test_each_context_with_messages_gets_a_turn_and_empty_ones_none(home: HomeDir) -> None:
    for name in ("ann", "bob"):
        letter(home, name, f"task of {name}")
    home.context("empty").mkdir()
    with server(answer) as model:
        home.configure(url=model.url)
        run = cru("-b", home=home)
        assert run.code == 0 and run.err == ""
        assert run.out == "[ann]\ndone: task of ann\n[bob]\ndone: task of bob\n"
        assert [last(r).splitlines()[:3] for r in model.requests] == [
            ["[messages from other contexts]", f"[From: me] task of {name}", "[end of messages]"]
            for name in ("ann", "bob")
        ]
        assert all(last(r).splitlines()[4].startswith("The messages above") and MARK in last(r) for r in model.requests)
        again = cru("-b", "-v", home=home)
        assert again.code == 0 and again.out == "" and "no messages wait" in again.err
    assert home.log("ann")[0]["metadata"] == {"source": "inbox"}
    state = msgspec.json.decode((home.cru / "state.json").read_bytes())
    assert home.log("empty") == [] and state["current_context"] == "default"


def test_one_context_alone_has_no_heading(home: HomeDir) -> None:
    letter(home, "ann", "one")
    letter(home, "bob", "two")
    with server(answer) as model:
        home.configure(url=model.url)
        assert cru("-B", "bob", home=home).out == "done: two\n"
        assert cru("-b", home=home).out == "done: one\n"
        assert cru("-B", "ann", home=home).out == ""


def test_the_previous_context_is_a_minus(home: HomeDir) -> None:
    with server(answer) as model:
        home.configure(url=model.url)
        assert cru("-c", "ann", "-x", home=home).code == cru("-c", "bob", "-x", home=home).code == 0
        letter(home, "ann", "one")
        assert cru("-B", "-", home=home).out == "done: one\n"


def test_an_unknown_context_is_an_error_with_the_closest_name(home: HomeDir) -> None:
    letter(home, "worker", "one")
    run = cru("-B", "wroker", home=home)
    assert run.code == 1 and run.out == "" and "there is no context 'wroker'" in run.err and "worker" in run.err
    assert not home.context("wroker").exists()


def test_the_prompt_can_be_replaced_and_is_no_command(home: HomeDir) -> None:
    (home.cru / "prompts").mkdir(parents=True)
    (home.cru / "prompts/inbox.md").write_text("/help yourself\n")
    letter(home, "ann", "one")
    with server(lambda request: Reply("ok")) as model:
        home.configure(url=model.url)
        assert cru("-b", home=home).out == "ok\n"
        assert last(model.requests[0]).endswith("[end of messages]\n\n/help yourself")
        (home.cru / "prompts/inbox.md").write_text(" \n")
        letter(home, "ann", "two")
        assert cru("-b", home=home).code == 0
        assert MARK in last(model.requests[1])


def test_a_failure_does_not_stop_the_sweep_and_the_worst_status_stays(home: HomeDir) -> None:
    for name in ("a", "b", "c"):
        letter(home, name, f"task of {name}")
    (home.context("b") / "local.toml").write_text('model = "scripted:/nowhere"\n')
    (home.context("c") / "context.jsonl").mkdir()
    home.context("d").mkdir()
    (home.context("d") / "inbox.jsonl").mkdir()
    with server(answer) as model:
        home.configure(url=model.url)
        run = cru("-b", home=home)
    assert run.code == 5 and run.out == "[a]\ndone: task of a\n[b]\n[c]\n" and "Traceback" not in run.err
    assert "/nowhere" in run.err and "context.jsonl" in run.err and "d/inbox.jsonl" in run.err
    assert cru("-x", "-B", "b", home=home).out == "", "the messages are in the prompt, which --resume goes on with"
    assert cru("-x", "-B", "c", home=home).out == "c: 1 message waits\n"


def test_a_held_context_is_left_out_by_the_sweep_and_an_error_by_name(home: HomeDir) -> None:
    letter(home, "free", "one")

    def rule(request: Received) -> Step:
        return Hang("so far") if "first" in last(request) else Reply("ok")

    with server(rule) as model:
        home.configure(url=model.url)
        with start("-C", "held", "first", home=home) as first:
            first.wait_for("so far")
            letter(home, "held", "two")
            run = cru("-b", home=home)
            assert run.code == 0 and run.out == "[free]\nok\n[held]\n"
            assert f"cru: held is left out: context 'held' is in use by process {first.pid}" in run.err
            one = cru("-B", "held", home=home)
            assert one.code == 4 and one.out == "" and f"process {first.pid}" in one.err
        assert cru("-x", "-b", home=home).out == "held: 1 message waits\n"


@pytest.mark.parametrize("words", [("-x", "-b"), ("-b", "-x")])
def test_without_the_model_it_says_what_waits(home: HomeDir, words: tuple[str, ...]) -> None:
    letter(home, "ann", "one")
    letter(home, "ann", "two")
    before = (home.context("ann") / "inbox.jsonl").read_bytes()
    run = cru(*words, home=home)
    assert run.code == 0 and run.out == "ann: 2 messages wait\n" and run.err == ""
    assert (home.context("ann") / "inbox.jsonl").read_bytes() == before
    assert list(home.context("ann").iterdir()) == [home.context("ann") / "inbox.jsonl"]


def test_it_is_quiet_like_the_other_flags_unless_forced(home: HomeDir) -> None:
    letter(home, "ann", "one")
    with server(lambda request: Reply("ok")) as model:
        home.configure(url=model.url)
        run = cru("-B", "ann", "hello", home=home)
        assert run.out == "ok\n" and "the prompt is not sent (-B)" in run.err
        letter(home, "ann", "two")
        assert cru("-X", "-B", "ann", "hello", home=home).out == "ok\nok\n"
    assert last(model.requests[-1]) == "hello" and len(model.requests) == 3


def test_for_programs_every_turn_has_its_lines_and_the_last_one_the_worst_status(home: HomeDir) -> None:
    letter(home, "ann", "one")
    letter(home, "bob", "two")
    (home.context("bob") / "local.toml").write_text('model = "scripted:/nowhere"\n')
    with server(answer) as model:
        home.configure(url=model.url)
        run = cru("--json", "-b", home=home)
    lines = [msgspec.json.decode(line) for line in run.out.splitlines()]
    assert run.code == 5
    assert [x["payload"]["context"] for x in lines if x["type"] == "session:started"] == ["ann", "bob"]
    assert [x["code"] for x in lines if x["type"] == "result"] == [0, 5, 5] and lines[-1]["type"] == "result"
    assert next(x for x in lines if x["type"] == "message:received")["stamp"]["source"] == "inbox"


def test_lines_that_are_no_messages_are_named_and_put_aside_by_the_turn(home: HomeDir) -> None:
    letter(home, "ann", "one")
    home.context("bob").mkdir()
    for name in ("ann", "bob"):
        with (home.context(name) / "inbox.jsonl").open("ab") as file:
            file.write(b"nonsense\n")
    with server(answer) as model:
        home.configure(url=model.url)
        run = cru("-b", home=home)
    assert run.code == 0 and run.out == "done: one\n"
    assert run.err.count("not a message") == 2 and "bob: inbox.jsonl:1" in run.err
    assert (home.context("ann") / "inbox.rejected.jsonl").read_bytes() == b"nonsense\n"
    assert (home.context("bob") / "inbox.jsonl").read_bytes() == b"nonsense\n", "no turn, nothing taken"


def test_messages_that_the_sweep_sends_reach_contexts_later_in_the_row(home: HomeDir) -> None:
    letter(home, "ann", "tell zoe")

    def rule(request: Received) -> Step:
        if "tell zoe" in last(request):
            return Reply(calls=[Call("send_message", {"to": "zoe", "content": "from ann"})])
        return Reply("ok")

    with server(rule) as model:
        home.configure(url=model.url)
        assert cru("-t", "-b", home=home).out == "ok\n", "who had none when it began waits for the next one"
        assert cru("-b", home=home).out == "ok\n"
    assert "[From: ann] from ann" in last(model.requests[-1])


def test_interrupting_ends_the_sweep(home: HomeDir) -> None:
    letter(home, "a", "one")
    letter(home, "b", "two")
    with server(lambda request: Hang("so far")) as model:
        home.configure(url=model.url)
        with start("-b", home=home) as run:
            run.wait_for("so far")
            run.interrupt()
            assert run.wait().code == 130
        assert len(model.requests) == 1
    assert cru("-x", "-b", home=home).out == "b: 1 message waits\n"


def test_every_turn_has_the_key_of_the_environment(home: HomeDir) -> None:
    letter(home, "ann", "one")
    letter(home, "bob", "two")
    with server(answer) as model:
        home.configure(f'model = "mock"\nbase_url = "{model.url}"\n')
        assert cru("-b", home=home, env={"CRU_API_KEY": "the-key"}).code == 0
        assert [request.headers.get("authorization") for request in model.requests] == ["Bearer the-key"] * 2


COUNTING = """
import os, threading
from cru import on

@on("turn:complete")
def count(ctx, event):
    with open({path!r}, "a") as file:
        print(len(os.listdir("/proc/self/fd")), threading.active_count(), file=file)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counted by way of /proc")
@pytest.mark.parametrize("is_remote", [False, True])
def test_a_turn_leaves_no_descriptor_and_no_thread_behind(home: HomeDir, is_remote: bool) -> None:
    counts = home.path / "counts"
    (home.cru / "plugins").mkdir(parents=True)
    (home.cru / "plugins" / "counting.py").write_text(COUNTING.format(path=str(counts)))
    names = [f"ctx-{number:02}" for number in range(12)]
    for name in names:
        letter(home, name, f"task of {name}")
    with server(answer) as model:
        home.configure(url="http://models.example/v1" if is_remote else model.url)
        run = cru("-b", home=home, env={"http_proxy": f"http://127.0.0.1:{model.port}"} if is_remote else None)
    assert run.code == 0 and run.out.count("done: ") == len(names), run.err
    figures = [tuple(map(int, line.split())) for line in counts.read_text().splitlines()]
    assert len(figures) == len(names) and set(figures[1:]) == {figures[1]}, figures


@pytest.mark.slow
def test_more_inboxes_than_descriptors(home: HomeDir, tmp_path: Path) -> None:
    limited = tmp_path / "limited"
    limited.write_text(f'#!/bin/sh\nulimit -n 48\nexec {cru_word()} "$@"\n')
    limited.chmod(0o755)
    names = [f"ctx-{number:02}" for number in range(40)]
    for name in names:
        letter(home, name, f"task of {name}")
    with server(answer) as model:
        home.configure(url=model.url)
        run = cru("-b", home=home, script=limited)
    assert (run.code, run.err) == (0, "") and run.out.count("done: ") == len(names)


def test_conversations_of_other_projects_are_left_out_and_named(home: HomeDir, tmp_path: Path) -> None:
    other = tmp_path / "other"
    for folder in (other, home.project):
        (folder / ".git").mkdir(parents=True)
    with server([Reply("begun"), Reply("begun")]) as model:
        home.configure(url=model.url)
        assert cru("-C", "theirs", "hello", home=home, cwd=other).code == 0
        assert cru("-C", "ours", "hello", home=home).code == 0
    for name in ("theirs", "ours"):
        letter(home, name, f"task of {name}")
    with server(answer) as model:
        home.configure(url=model.url)
        run = cru("-b", home=home)
        assert "done: task of ours" in run.out and "theirs" not in run.out and len(model.requests) == 1
        told = f"theirs is left out: it began in another project, {other.resolve()} (`cru -b` there, or `cru -B theirs` here)"
        assert run.code == 0 and told in run.err
        assert "theirs: 1 message waits" in cru("-x", "-b", home=home).out
        there = cru("-b", home=home, cwd=other)
        assert there.out == "done: task of theirs\n"
        letter(home, "theirs", "by name")
        here = cru("-B", "theirs", home=home)
        assert here.out == "done: by name\n" and "theirs began in another project" in here.err
