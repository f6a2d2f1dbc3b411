"""`cru.sessions` where something goes wrong: bad arguments, kills, limits, readers that do not read."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.core.agents.support import script
from tests.core.api.session_programs import configure, last, plugin_home, result
from tests.kit import HomeDir, cru, start
from tests.kit.waiting import wait_until

from cru.core.api.sessions.feed import MOST_WAITING, EventReader, SessionFeed


@pytest.fixture(params=["lua", "py"])
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def here(tmp_path: Path) -> HomeDir:
    return plugin_home(tmp_path)


BAD = [
    ("create{agent_card = 'nobody'}", "there is no agent 'nobody'"),
    ("create{endpoint = 'http://evil'}", "endpoint cannot be chosen here"),
    ("create{workspace = '/etc'}", "works in this project"),
    ("create{agent_type = 'acp'}", "only agents of cru"),
    ("create{temperature = 3}", "temperature must be 0 to 2"),
    ("create{model = 7}", "model: expected text, got a whole number"),
    ("send_message('../../x', 'y')", "there is no session `../../x`"),
    ("send_message(nil, ' ')", "must not be empty"),
    ("messages({})", "must be a string"),
    ("end_session(nil)", "only a session that a script has opened"),
    ("inject(nil, 'system', 'x')", "role must be user or assistant"),
    ("fork(nil, -1)", "at least 0"),
    ("undo(nil, 1.5)", "whole number"),
    ("collect_subagents('x')", "must be an array"),
]


@pytest.mark.sample(6)
@pytest.mark.parametrize(("call", "told"), BAD)
def test_what_cannot_be_is_said_as_the_second_value(here: HomeDir, call: str, told: str) -> None:
    source = f"local value, why = cru.sessions.{call}\nreturn tostring(value) .. ': ' .. tostring(why)"
    run = cru("lua", source, home=here)
    assert run.code == 0 and run.out.startswith('"nil: ') and told in run.out, run
    assert "Traceback" not in run.err


def test_what_still_works_at_the_end_is_ended_and_told(here: HomeDir, language: str, tmp_path: Path) -> None:
    script(tmp_path, "slow", "delay: 600s\n")
    source = f"scripted:{tmp_path}/slow.txt"
    result(
        here, language,
        f'local s = sessions.create({{model = "{source}"}})\nreturn sessions.send_message(s.id, "go")',
        f's, _ = await sessions.create(model="{source}")\nreturn (await sessions.send_message(s["id"], "go"))[0]',
    )  # fmt: skip
    assert "sub-agent general ended with the session: go" in last(here).err


def test_messages_at_the_same_time_are_answered_one_after_the_other(here: HomeDir, language: str) -> None:
    got = result(
        here, language,
        """
        local s, said, open = sessions.create({agent_card = "explore", model = "MODEL"}), {}, 3
        for number = 1, 3 do
          cru.spawn(function()
            said[number] = collect(s.id, "message " .. number)
            open = open - 1
          end)
        end
        while open > 0 do cru.timer.sleep(0.01) end
        return {said, #sessions.messages(s.id, {role = "user"})}
        """,
        """
import asyncio
s, _ = await sessions.create(agent_card="explore", model="MODEL")
said = await asyncio.gather(*(collect(s["id"], f"message {number}") for number in (1, 2, 3)))
return [said, len(sessions.messages(s["id"], role="user")[0])]
        """,
    )  # fmt: skip
    assert got == [
        ["thinking: hm, text: I look, tool_call: ls, tool_result: ls, text: first", "text: second", "text: third"],
        3,
    ]


def test_limits_of_tasks_are_limits_of_sessions(here: HomeDir, language: str, tmp_path: Path) -> None:
    configure(here, tmp_path, "[tasks]\nmax_tasks = 1\n")
    got = result(
        here, language,
        """
        local one, two = sessions.create({model = "MODEL"}), sessions.create({model = "MODEL"})
        return {collect(one.id, "one"), collect(two.id, "one"), collect(one.id, "two")}
        """,
        """
(one, _), (two, _) = await sessions.create(model="MODEL"), await sessions.create(model="MODEL")
return [await collect(one["id"], "one"), await collect(two["id"], "one"), await collect(one["id"], "two")]
        """,
    )  # fmt: skip
    assert (
        got[0].endswith("text: first")
        and "has started 1 tasks, which is the limit" in got[1]
        and got[2] == "text: second"
    )


@pytest.mark.sample(1)
def test_a_session_whose_cru_was_killed_goes_on_in_the_next(here: HomeDir, language: str, tmp_path: Path) -> None:
    script(tmp_path, "slow", "text: begun\ncall: ls {}\n---\ndelay: 600s\n")
    plugin = (
        'cru.on("session:started", function() local s = cru.sessions.create({model = "scripted:%s/slow.txt"})\n'
        '  cru.fs.write("id", s.id) cru.sessions.send_and_collect(s.id, "one", 600)() cru.timer.sleep(30) end)'
    )
    (here.cru / "plugins" / "slow.lua").write_text(plugin % tmp_path)
    with start("go", home=here) as run:
        wait_until(
            lambda: any(b"tool_result" in file.read_bytes() for file in here.context().glob("tasks/*/context.jsonl"))
        )
        run.kill()
    (here.cru / "plugins" / "slow.lua").unlink()
    session_id = (here.project / "id").read_text()
    script(tmp_path, "slow", "loop: yes\ntext: again\n")
    got = result(
        here, language,
        f"""
        local id = "{session_id}"
        local was = #sessions.messages(id)
        return {{was, collect(id, "two"), sessions.get(id).state}}
        """,
        f"""
was = len(sessions.messages("{session_id}")[0])
return [was, await collect("{session_id}", "two"), (await sessions.get("{session_id}"))[0]["state"]]
        """,
    )  # fmt: skip
    assert got == [3, "text: again", "active"]


def test_a_record_that_is_broken_is_no_session(here: HomeDir, language: str) -> None:
    folder = here.context() / "tasks" / "abcd1234"
    folder.mkdir(parents=True)
    (folder / "session.json").write_text('{"id": 7')
    got = result(
        here, language,
        'return {#sessions.list(), collect("abcd1234", "hello")}',
        'return [len((await sessions.list())[0]), await collect("abcd1234", "hello")]',
    )  # fmt: skip
    assert got[0] == 1 and "there is no session `abcd1234`" in got[1]


def test_a_reader_that_does_not_read_costs_no_memory_and_hears_what_it_missed() -> None:
    async def read() -> list[object]:
        feed = SessionFeed("s")
        reader = feed.add(EventReader(), "p")
        for number in range(MOST_WAITING + 5):
            feed.tell("text_delta", content=str(number))
        return [await reader(), await reader(), feed.close("other"), feed.close("p")]

    gap, first, others, own = asyncio.run(read())
    assert gap == {"type": "stream_gap", "data": {"missed": 5}, "session_id": "s"}
    assert first == {"type": "text_delta", "data": {"content": "5"}, "session_id": "s"} and (others, own) == (0, 1)


def test_what_was_sent_and_never_asked_is_told(here: HomeDir) -> None:
    run = cru("lua", "cru.sessions.send_message(nil, 'the build is red')", home=here)
    assert "before the agent was asked what a plugin sent: the build is red" in run.err
    run = cru("lua", "cru.sessions.create{kilns = {'notes'}}", home=here)
    assert "kilns has no effect" in run.err


def test_what_waits_behind_a_message_when_the_session_ends_is_told(
    here: HomeDir, language: str, tmp_path: Path
) -> None:
    script(tmp_path, "slow", "delay: 600s\n")
    source = f"scripted:{tmp_path}/slow.txt"
    result(
        here, language,
        f'local s = sessions.create({{model = "{source}"}})\nsessions.send_message(s.id, "one")\nreturn sessions.send_message(s.id, "two")',
        f"""
s, _ = await sessions.create(model="{source}")
await sessions.send_message(s["id"], "one")
return (await sessions.send_message(s["id"], "two"))[0]
        """,
    )  # fmt: skip
    assert "sub-agent general ended with the session: one" in last(here).err
    assert "two: the session is ending: nothing begins any more" in last(here).err


def test_who_listens_no_more_gets_the_whole_answer_all_the_same(here: HomeDir, language: str, tmp_path: Path) -> None:
    script(tmp_path, "slow", "text: I look\ncall: ls {}\n---\ndelay: 300ms\ntext: first\n")
    source = f"scripted:{tmp_path}/slow.txt"
    got = result(
        here, language,
        f"""
        local s = sessions.create({{model = "{source}"}})
        sessions.subscribe(s.id)
        local next_part, parts = sessions.send_and_collect(s.id, "one"), {{}}
        parts[1] = next_part().content
        sessions.unsubscribe(s.id)
        for part in next_part do parts[#parts + 1] = part.content end
        return parts
        """,
        f"""
s, _ = await sessions.create(model="{source}")
sessions.subscribe(s["id"])
answer = (await sessions.send_and_collect(s["id"], "one"))[0]
parts = [(await answer())["content"]]
sessions.unsubscribe(s["id"])
return parts + [part["content"] async for part in answer if "content" in part]
        """,
    )  # fmt: skip
    assert got == ["I look", "first"]


def test_who_gives_up_collecting_leaves_nothing_behind(here: HomeDir, tmp_path: Path) -> None:
    script(tmp_path, "slow", "delay: 600s\ntext: late\n")
    got = result(
        here, "py", "",
        f"""
import asyncio
s, _ = await sessions.create(model="scripted:{tmp_path}/slow.txt")
await sessions.send_message(s["id"], "go")
before = asyncio.all_tasks()
try:
    await asyncio.wait_for(sessions.collect_subagents([s["id"]], 600), 0.05)
except TimeoutError:
    await asyncio.sleep(0)
return [str(task) for task in asyncio.all_tasks() - before if "Event.wait" in str(task)]
        """,
    )  # fmt: skip
    assert got == []
