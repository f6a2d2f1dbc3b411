"""Nothing that a rule says gets lost: whatever a handler returns counts, or is told, or is the handler's failure, which denies."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.kit import Call, Done, HomeDir, Received, Reply, home, server
from tests.kit import cru as command

WORK = Call("bash", {"command": "echo ran > ran.txt"})
LUA = 'cru.on("{event}", function(ctx, event)\n{body}\nend)\n'
PYTHON = "import asyncio, concurrent.futures\nfrom cru import on\n@on('{event}')\n{kind} f(ctx, event):\n    {body}\n"
GATE = "tool:before_call"
PROMPT = "message:received"


def turn(tmp_path: Path, source: str) -> tuple[Done, HomeDir, list[Received]]:
    """One turn in which the model calls bash once; a source of Python imports something."""
    with server((Reply(calls=(WORK,)), Reply("all is well"))) as model:
        here = home(tmp_path)
        here.configure('mode = "trust"\n', model.url)
        (here.cru / "plugins").mkdir()
        (here.cru / "plugins" / ("rule.py" if source.startswith("import") else "rule.lua")).write_text(source)
        done = command("hello", home=here)
    assert "Traceback" not in done.err and "RuntimeWarning" not in done.err, done.err
    return done, here, model.requests


def lua(body: str, event: str = GATE) -> str:
    return LUA.format(event=event, body=body)


def python(body: str, event: str = GATE, kind: str = "def") -> str:
    return PYTHON.format(event=event, body=body, kind=kind)


# what → (source, what is said)
DENIED: dict[str, tuple[str, str]] = {
    "an attribute in Python": (python("event.cancel = True; return event"), "cancelled"),
    "an attribute with a reason": (python("event.cancel = True; event.reason = 'not now'; return event"), "not now"),
    "a key of the event in Lua": (lua("event.cancel = true event.reason = 'not now' return event"), "not now"),
    "a key of the payload in Lua": (lua("event.payload.cancel = true return event"), "cancelled"),
    "a key of the payload in Python": (python("event.payload.cancel = True; return event"), "cancelled"),
    "ask in the event": (lua("event.ask = true return event"), "to decide"),
    "ask beside an inject in Lua": (lua("return { ask = true, reason = 'look', inject = 'x' }"), "look"),
    "ask beside an inject in Python": (python("return {'ask': True, 'reason': 'look', 'inject': 'x'}"), "look"),
    "ask beside an allow": (lua("return { ask = true, allow = true, reason = 'look' }"), "look"),
    "ask beside handled": (lua("return { ask = true, handled = true, result = 'x' }"), "`ask` beside `handled`"),
    "0 in Lua": (lua("return { cancel = 0 }"), "`cancel` must be true or false, not a number"),
    "an empty text in Lua": (lua("return { cancel = '' }"), "`cancel` must be true or false, not a text"),
    "an empty table in Lua": (lua("return { deny = {} }"), "`deny` must be true or false, not a table"),
    "a text in Lua": (lua("return { cancel = 'because' }"), "`cancel` must be true or false, not a text"),
    "0 in Python": (python("return {'cancel': 0}"), "`cancel` must be true or false, not a number"),
    "a list in Python": (python("return {'halt': [1]}"), "`halt` must be true or false, not a list"),
    "a word that is waited for by nobody": (
        python("async def no(): return True\n    return {'cancel': no()}"), "`cancel` must be true or false, not a coroutine",
    ),
    "a field that is waited for by nobody": (
        python("async def no(): return {}\n    return {'args': no()}"), "`args` is a coroutine that nobody awaited",
    ),
    "a reason that is no text": (lua("return { cancel = true, reason = {} }"), "`reason` must be a text, not a table"),
    "a misspelt word in Lua": (lua("return { cancle = true }"), "did you mean `cancel`?"),
    "a misspelt attribute in Python": (python("event.cancle = True; return event"), "did you mean `cancel`?"),
    "a misspelt field in Python": (python("event.agrs = {}; return event"), "did you mean `args`?"),
    "a word of another system": (python("return {'decision': 'deny'}"), "did you mean `cancel, allow or ask`?"),
    "a result alone": (lua("return { result = 'x' }"), "`result` without `handled`"),
    "a misspelt key of an inject": (lua("return { inject = { content = 'x', postion = 'y' } }"), "did you mean `position`?"),
    "a field that was deleted": (python("del event.args; return event"), "`args` was taken out of the event"),
    "a field that says two things": (
        python("event.args = {'command': 'a'}; event.payload.args = {'command': 'b'}; return event"),
        "`args` and `payload.args` differ",
    ),
    "a payload that is no table": (lua("return { payload = 'x' }"), "`payload` must be a table, not a text"),
    "a generator": (python("yield {'cancel': True}"), "returned a generator; a table or nil is understood"),
    "an async generator": (
        python("yield {'cancel': True}", kind="async def"), "returned an async_generator; a table or nil is understood",
    ),
    "a tuple": (python("return True, 'no'"), "returned a tuple; a table or nil is understood"),
    "a list": (python("return [{'cancel': True}]"), "returned a list; a table or nil is understood"),
    "a list in Lua": (lua("return { { cancel = true } }"), "returned a list; a table or nil is understood"),
    "true": (lua("return true"), "returned true; a table or nil is understood"),
    "a word": (lua("return 'no'"), "returned a text 'no'; a table or nil is understood"),
    "an error in a table": (lua("return { error = 'no disk' }"), "`error` without a decision"),
    "an error as Lua returns it": (lua("return nil, 'no disk'"), "returned nil, a text 'no disk'"),
    "a wait, then an error": (lua("cru.timer.sleep(0.001) return nil, 'no disk'"), "returned nil, a text 'no disk'"),
    "an error that is nil": (lua("error(nil)"), "failed: an error without a message"),
    "an object": (python("return object()"), "returned an object; a table or nil is understood"),
    "a future of a thread": (
        python("return concurrent.futures.Future()"), "returned a Future; a table or nil is understood",
    ),
    "a coroutine out of a coroutine": (
        python("async def no(): return {'cancel': True, 'reason': 'late'}\n    return no()", kind="async def"), "late",
    ),
    "a future of the loop": (
        python(
            "w = asyncio.get_running_loop().create_future()\n"
            "    asyncio.get_running_loop().call_soon(w.set_result, {'cancel': True, 'reason': 'late'})\n    return w"
        ),
        "late",
    ),
}  # fmt: skip


@pytest.mark.sample(5)
@pytest.mark.parametrize("what", DENIED)
def test_a_guard_that_says_no_in_any_way_denies_the_call(tmp_path: Path, what: str) -> None:
    source, said = DENIED[what]
    done, here, requests = turn(tmp_path, source)
    assert not (here.project / "ran.txt").exists(), done
    [result] = [message["content"] for message in requests[1].body["messages"] if message["role"] == "tool"]
    assert said in result


# what → (source, what is said)
UNSENT: dict[str, tuple[str, str]] = {
    "an attribute in Python": (python("event.cancel = True; return event", PROMPT), "cancelled"),
    "a key in Lua": (lua("event.cancel = true return event", PROMPT), "cancelled"),
    "beside an inject": (lua("return { cancel = true, reason = 'no', inject = 'x' }", PROMPT), "no"),
    "0 in Lua": (lua("return { cancel = 0 }", PROMPT), "`cancel` must be true or false"),
    "with a reason that is none": (python("return {'cancel': True, 'reason': [1]}", PROMPT), "`reason` must be a text"),
    "with bytes that are no text": (lua("return { cancel = true, reason = 'no \\255' }", PROMPT), "no ?"),
    "ask": (lua("return { ask = true }", PROMPT), "`ask` means nothing on message:received"),
    "misspelt": (lua("return { cancle = true }", PROMPT), "did you mean `cancel`?"),
    "misspelt in the event": (python("event.cancle = True; return event", PROMPT), "did you mean `cancel`?"),
    "a word of another system": (python("return {'continue': False}", PROMPT), "did you mean `halt`?"),
    "cancelled": (python("return {'cancelled': True}", PROMPT), "cancelled"),
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("what", UNSENT)
def test_a_prompt_that_a_handler_forbids_in_any_way_is_not_sent(tmp_path: Path, what: str) -> None:
    source, said = UNSENT[what]
    done, _, requests = turn(tmp_path, source)
    assert requests == [] and said in done.err, done


PASSING = {
    "nothing": python("return None", PROMPT),
    "false": lua("return false", PROMPT),
    "a list without anything": python("return [] and {'cancel': True}", PROMPT),
    "an absent word": lua("return { cancel = false, inject = false, context = false, reason = false }", PROMPT),
    "a word of another system that lets it": python("return {'continue': True, 'block': False}", PROMPT),
    "the event as it came": python("return event", PROMPT),
}


@pytest.mark.parametrize("what", PASSING)
def test_what_says_nothing_passes(tmp_path: Path, what: str) -> None:
    done, here, requests = turn(tmp_path, PASSING[what])
    assert done.out == "all is well\n" and requests[0].body["messages"][-1]["content"] == "hello"
    assert (here.project / "ran.txt").exists() and "failed" not in done.err


CHANGING = {
    "an attribute": python("event.args = {'command': 'echo other > other.txt'}; return event"),
    "a key": python("event['args'] = {'command': 'echo other > other.txt'}; return event"),
    "an attribute of the payload": python("event.payload.args = {'command': 'echo other > other.txt'}; return event"),
    "fields beside an inject in Lua": lua(
        "return { args = { command = 'echo other > other.txt' }, inject = 'said too' }"
    ),
    "an inject in the event in Lua": lua(
        "event.args.command = 'echo other > other.txt' event.inject = 'said too' return event"
    ),
    "an inject in the event in Python": python(
        "event.args['command'] = 'echo other > other.txt'; event.inject = 'said too'; return event"
    ),
}


@pytest.mark.parametrize("what", CHANGING)
def test_all_that_an_answer_changes_and_adds_counts(tmp_path: Path, what: str) -> None:
    _, here, requests = turn(tmp_path, CHANGING[what])
    assert (here.project / "other.txt").exists() and not (here.project / "ran.txt").exists()
    said = [message["content"] for message in requests[1].body["messages"] if message["role"] == "user"]
    assert ("said too" in said[-1]) == ("inject" in what)


def test_a_halt_after_a_tool_keeps_what_the_handler_made_of_the_result(tmp_path: Path) -> None:
    _, here, requests = turn(tmp_path, lua("return { halt = true, result = 'withheld' }", "tool:completed"))
    assert len(requests) == 1
    assert [e["content"] for e in here.log() if e["entry_type"] == "tool_result"] == ["withheld"]


def test_what_is_left_out_beside_a_no_is_told(tmp_path: Path) -> None:
    done, _, _ = turn(tmp_path, lua("return { cancel = true, context = 'see the rules', inject = 'x' }"))
    assert "`context` beside `cancel` is left out" in done.err and "`inject` beside `cancel` is left out" in done.err


def test_a_table_of_values_is_not_for_values_of_ones_own(tmp_path: Path) -> None:
    done, _, _ = turn(tmp_path, lua("\ncru.state.n = 5", PROMPT))
    assert "rule.lua:3: cru.state.n cannot be assigned (cru.state.set(" in done.err
