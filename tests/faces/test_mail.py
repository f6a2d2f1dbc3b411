"""Contexts that write to one another and look at one another: send_message, read_context, and writers that are no cru."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter

import msgspec
import pytest
from tests.kit import Call, HomeDir, Received, Reply, Step, cru, server

WRITER = """
import fcntl, json, os, sys
folder, sender = sys.argv[1:]
os.makedirs(folder, exist_ok=True)
for number in range(50):
    with open(os.path.join(folder, ".inbox.lock"), "w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        with open(os.path.join(folder, "inbox.jsonl"), "a") as inbox:
            line = {"id": f"{sender}-{number}", "timestamp": 1, "from": sender, "to": "busy", "content": f"word {sender}-{number}."}
            inbox.write(json.dumps(line) + "\\n")
"""


def calls(*made: Call) -> list[Step]:
    return [*(Reply(calls=[call]) for call in made), Reply("ok")]


def results(home: HomeDir) -> list[str]:
    return [entry["content"] for entry in home.log() if entry["entry_type"] == "tool_result"]


def failures(home: HomeDir) -> list[bool]:
    return [entry["metadata"].get("is_error", False) for entry in home.log() if entry["entry_type"] == "tool_result"]


@pytest.mark.slow
def test_programs_with_chibis_protocol_lose_no_message_while_cru_reads(home: HomeDir) -> None:
    found: Counter[str] = Counter()

    def answer(request: Received) -> Step:
        found.update(re.findall(r"word (\d-\d+)\.", str(request.body["messages"][-1]["content"])))
        return Reply("ok")

    with server(answer) as model:
        home.configure(url=model.url)
        argv = [sys.executable, "-c", WRITER, str(home.context("busy"))]
        writers = [subprocess.Popen([*argv, str(number)]) for number in range(4)]
        while any(writer.poll() is None for writer in writers):
            assert cru("-B", "busy", "-C", "busy", home=home).code in (0, 1), "1: there is no such context yet"
        assert [writer.returncode for writer in writers] == [0] * 4
        assert cru("-C", "busy", "and the rest", home=home).code == 0
    assert found == Counter(f"{sender}-{number}" for sender in range(4) for number in range(50))
    assert (home.context("busy") / "inbox.jsonl").read_bytes() == b""


def test_a_message_to_nobody_makes_its_context(home: HomeDir) -> None:
    with server(calls(Call("send_message", {"to": "new-one", "content": "hello"}))) as model:
        home.configure(url=model.url)
        assert cru("-t", "go", home=home).out == "ok\n"
    assert results(home) == ["Message sent to new-one (a new context was made for it)"]
    (line,) = home.lines("new-one", "inbox.jsonl")
    assert (line["from"], line["to"], line["content"]) == ("default", "new-one", "hello")
    assert cru("-L", home=home).out == "* default\n  new-one (1 message waits)\n"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"content": "x"}, "`to`: required"),
        ({"to": "a"}, "`content`: required"),
        ({"to": "", "content": "x"}, "`to`: must not be empty"),
        ({"to": "../a", "content": "x"}, "not a name for a context"),
        ({"to": "-", "content": "x"}, "no previous context"),
        ({"to": "system", "content": "x"}, "cannot be called"),
    ],
)
def test_a_message_that_cannot_be_sent_is_told_to_the_model(home: HomeDir, args: dict[str, str], said: str) -> None:
    with server(calls(Call("send_message", args))) as model:
        home.configure(url=model.url)
        run = cru("-t", "go", home=home)
    assert run.out == "ok\n" and "Traceback" not in run.err
    assert said in results(home)[0] and failures(home) == [True]
    assert [path.name for path in (home.cru / "contexts").iterdir()] == ["default"]


# read_context -------------------------------------------------------------------------------------------------------------------


def other(home: HomeDir) -> None:
    """A context with a summary, texts, and three legs."""
    with server(lambda request: Reply("an answer")) as model:
        home.configure(url=model.url)
        for number in range(3):
            assert cru("-C", "other", f"prompt {number}", home=home).code == 0
    folder = home.context("other")
    (folder / "summary.md").write_text("What was.")
    (folder / "todos.md").write_text("buy milk")
    (folder / "goals.md").write_text("be well")


def looked(home: HomeDir, **args: object) -> object:
    with server(calls(Call("read_context", {"context_name": "other", **args}))) as model:
        home.configure(url=model.url)
        assert cru("go", home=home).out == "ok\n"
    return msgspec.json.decode(results(home)[-1])


@pytest.mark.slow
def test_another_context_can_be_read_without_a_question(home: HomeDir) -> None:
    other(home)
    before = {path.name: path.read_bytes() for path in home.context("other").iterdir() if path.is_file()}
    told = {"name": "other", "summary": "What was.", "todos": "buy milk", "goals": "be well", "message_count": 6}
    user, agent = ({"from": name, "type": "message"} for name in ("user", "other"))
    said = [line for n in range(3) for line in ({**user, "content": f"prompt {n}"}, {**agent, "content": "an answer"})]
    assert looked(home) == {**told, "recent_messages": said[-5:]}
    assert looked(home, num_messages=1) == {**told, "recent_messages": said[-1:]}
    assert looked(home, num_messages=100) == {**told, "recent_messages": said}
    assert looked(home, num_messages=0) == {**told, "recent_messages": []}
    assert looked(home, include_messages="true", num_messages=2) == {**told, "recent_messages": said[-2:]}
    assert looked(home, include_messages="false") == looked(home, include_messages=False) == told
    assert {path.name: path.read_bytes() for path in home.context("other").iterdir() if path.is_file()} == before


def test_a_context_may_read_itself_in_its_turn(home: HomeDir) -> None:
    other(home)
    with server(calls(Call("read_context", {"context_name": "default", "num_messages": 1}))) as model:
        home.configure(url=model.url)
        assert cru("go", home=home).out == "ok\n"
    assert msgspec.json.decode(results(home)[0])["recent_messages"][0]["content"] == "go"


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"context_name": "othre"}, "there is no context 'othre'\n  did you mean `other`?"),
        ({"context_name": "oth er"}, "not a name for a context"),
        ({"context_name": ""}, "`context_name`: must not be empty"),
        ({}, "`context_name`: required"),
        ({"context_name": "other", "num_messages": -1}, "`num_messages`: expected an integer >= 0"),
        ({"context_name": "other", "include_messages": "maybe"}, "`include_messages`: "),
        ({"context_name": "new:x"}, "not a name for a context"),
    ],
)
def test_what_cannot_be_read_is_told_to_the_model(home: HomeDir, args: dict[str, object], said: str) -> None:
    other(home)
    with server(calls(Call("read_context", args))) as model:
        home.configure(url=model.url)
        run = cru("go", home=home)
    assert run.out == "ok\n" and "Traceback" not in run.err
    assert said in results(home)[0] and failures(home) == [True]
    assert {path.name for path in (home.cru / "contexts").iterdir()} == {"default", "other"}


@pytest.mark.sample(1)
@pytest.mark.parametrize("rule", ["read_context", "read_context:oth*", "read:~/.cru/contexts/other/**"])
def test_a_rule_keeps_contexts_from_being_read(home: HomeDir, rule: str) -> None:
    other(home)
    with server(calls(Call("read_context", {"context_name": "other"}))) as model:
        home.configure(f'[permissions]\ndeny = ["{rule}"]\n', url=model.url)
        run = cru("-t", "go", home=home)
    assert run.out == "ok\n" and failures(home) == [True]
    assert "rule" in results(home)[0] and "an answer" not in results(home)[0]


# the reflection -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("road", ["model", "plugin"])
def test_no_road_writes_a_reflection_over_the_limit(home: HomeDir, road: str) -> None:
    (home.cru / "prompts").mkdir(parents=True)
    reflection = home.cru / "prompts/reflection.md"
    reflection.write_text("before")
    made = [Call("update_reflection", {"content": text}) for text in ("0123456789x", "ééééé")]
    if road == "plugin":
        plugin = home.cru / "plugins/note/init.lua"
        plugin.parent.mkdir(parents=True)
        plugin.write_text(
            '--- Notes.\n-- @tool name="note"\nfunction note()\n'
            '  local _, err = cru.tools.call("update_reflection", { content = "0123456789x" })\n  return err\nend\n'
        )
        made = [Call("note", {})]
    with server(calls(*made)) as model:
        home.configure("reflection_character_limit = 10\n", url=model.url)
        run = cru("-t", "go", home=home)
    assert run.out == "ok\n"
    assert "the reflection is too long: 11 bytes, at most 10; it was not changed" in results(home)[0]
    if road == "model":
        assert results(home)[1] == "Reflection updated." and reflection.read_text() == "ééééé"
    else:
        assert reflection.read_text() == "before"


def test_a_message_to_a_name_that_nearly_is_one_says_so(home: HomeDir) -> None:
    other(home)
    send = [Call("send_message", {"to": name, "content": "hello"}) for name in ("othre", "othre", "other")]
    with server(calls(*send)) as model:
        home.configure(url=model.url)
        assert cru("-t", "go", home=home).out == "ok\n"
    assert results(home) == [
        "Message sent to othre (a new context was made for it; did you mean `other`?)",
        "Message sent to othre",
        "Message sent to other",
    ]


@pytest.mark.parametrize(
    "call",
    [
        *(Call("send_message", {"to": name, "content": "x"}) for name in ("-", "a b", "system")),
        Call("read_context", {"context_name": "nothing-like-it"}),
    ],
)
def test_the_model_reads_sentences_without_names_of_our_code_or_flags(home: HomeDir, call: Call) -> None:
    with server(calls(call)) as model:
        home.configure(url=model.url)
        run = cru("-t", "go", home=home)
    assert run.out == "ok\n" and failures(home) == [True]
    assert not re.search(r"\b[A-Z][a-z]+[A-Z]|-L|cru ", results(home)[0]), results(home)
