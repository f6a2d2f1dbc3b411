"""`cru.sessions` in both languages, through the real command: conversations of scripts that go on, under the rules of the main agent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.core.agents.support import script
from tests.core.api.session_programs import configure, plugin_home, result
from tests.kit import HomeDir, cru


@pytest.fixture(params=["lua", "py"])
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def here(tmp_path: Path) -> HomeDir:
    return plugin_home(tmp_path)


def test_a_conversation_goes_on_from_message_to_message(here: HomeDir, language: str) -> None:
    got = result(
        here, language,
        """
        local s = sessions.create({agent_card = "explore", model = "MODEL", type = "scout"})
        local one, two = collect(s.id, "one"), collect(s.id, "two")
        local said = {}
        for _, message in ipairs(sessions.messages(s.id)) do said[#said + 1] = message.role .. ": " .. message.content end
        local users = #sessions.messages(s.id, {role = "user"})
        return {s.session_type, s.state, s.agent, one, two, table.concat(said, " | "), users, #sessions.messages(s.id, {limit = 1})}
        """,
        """
s, _ = await sessions.create(agent_card="explore", model="MODEL", type="scout")
one, two = await collect(s["id"], "one"), await collect(s["id"], "two")
said = " | ".join(f"{m['role']}: {m['content']}" for m in sessions.messages(s["id"])[0])
users = len(sessions.messages(s["id"], role="user")[0])
return [s["session_type"], s["state"], s["agent"], one, two, said, users, len(sessions.messages(s["id"], {"limit": 1})[0])]
        """,
    )  # fmt: skip
    assert got == [
        "scout", "active", "explore", "thinking: hm, text: I look, tool_call: ls, tool_result: ls, text: first", "text: second",
        "user: one | assistant: I look | tool: (empty folder) | assistant: first | user: two | assistant: second", 2, 1,
    ]  # fmt: skip
    (row,) = json.loads(cru("tasks", "--json", home=here).out)
    assert (row["agent"], row["status"], row["prompt"]) == ("explore", "completed", "two")
    shown = cru("tasks", "show", row["id"], home=here).out
    assert "> one\n" in shown and "first\n" in shown and "> two\n" in shown
    assert [entry["content"] for entry in here.log() if entry["entry_type"] == "message"] == ["go", "done"]


def test_rules_and_hooks_of_the_main_agent_hold_in_it(here: HomeDir, language: str, tmp_path: Path) -> None:
    script(tmp_path, "guarded", 'call: bash {"command": "touch pwned"}\n---\ncall: ls {}\n---\ntext: stopped\n')
    configure(here, tmp_path, '[permissions]\ndeny = ["bash:touch *"]\n')
    (here.cru / "plugins" / "guard.lua").write_text(
        "cru.on('tool:before_call', function(ctx, event)\n"
        "  if event.name == 'ls' then return { cancel = true, reason = 'no lists for ' .. tostring(event.agent_id ~= nil) } end\nend)\n"
    )
    got = result(
        here, language,
        f"""
        local s = sessions.create({{model = "scripted:{tmp_path}/guarded.txt"}})
        local parts = collect(s.id, "go")
        return {{parts, sessions.messages(s.id, {{role = "tool"}})[1].content, sessions.messages(s.id, {{role = "tool"}})[2].content}}
        """,
        f"""
s, _ = await sessions.create({{"model": "scripted:{tmp_path}/guarded.txt"}})
parts = await collect(s["id"], "go")
return [parts, *(m["content"] for m in sessions.messages(s["id"], role="tool")[0])]
        """,
    )  # fmt: skip
    assert got[0] == "tool_result: bash!, tool_result: ls!, text: stopped"
    assert "the rule `bash:touch *`" in got[1] and "no lists" in got[2]
    assert not (here.project / "pwned").exists()


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("guard", "told"),
    [
        ('[permissions]\ndeny = ["task:explore"]\n', "the rule `task:explore`"),
        ("cru.on('task:spawned', function() return { cancel = true, reason = 'not today' } end)", "not today"),
        ("cru.on('tool:before_call', function(c, e) return { cancel = e.args.prompt == 'go', reason = 'not so' } end)", "not so"),
        ("cru.on('tool:before_call', function() error('broken guard') end)", "broken guard"),
    ],
)  # fmt: skip
def test_what_guards_the_tool_task_guards_each_message(
    here: HomeDir, language: str, tmp_path: Path, guard: str, told: str
) -> None:
    if guard.startswith("["):
        configure(here, tmp_path, guard)
    else:
        (here.cru / "plugins" / "guard.lua").write_text(guard)
    got = result(
        here, language,
        'local s = sessions.create({agent_card = "explore", model = "MODEL"})\nreturn {collect(s.id, "go"), #sessions.messages(s.id)}',
        """
s, _ = await sessions.create(agent_card="explore", model="MODEL")
return [await collect(s["id"], "go"), len(sessions.messages(s["id"])[0])]
        """,
    )  # fmt: skip
    assert told in got[0] and got[1] == 0


def test_it_can_be_narrowed_paused_and_ended(here: HomeDir, language: str) -> None:
    got = result(
        here, language,
        """
        local s = sessions.create({agent_card = "explore", model = "MODEL", tools = {"read"}, system_prompt = "You are brief."})
        local said = {collect(s.id, "one")}
        local _, wrong = sessions.configure_agent(s.id, {mode = "plann"})
        sessions.configure_agent(s.id, {temperature = 0.5})
        sessions.pause(s.id)
        said[2] = collect(s.id, "two")
        sessions.resume(s.id)
        said[3] = collect(s.id, "two")
        sessions.end_session(s.id)
        said[4] = collect(s.id, "three")
        local _, over = sessions.resume(s.id)
        return {said, wrong, over, sessions.get(s.id).state, #sessions.list()}
        """,
        """
s, _ = await sessions.create(agent_card="explore", model="MODEL", tools=["read"], system_prompt="You are brief.")
said = [await collect(s["id"], "one")]
_, wrong = sessions.configure_agent(s["id"], mode="plann")
sessions.configure_agent(s["id"], temperature=0.5)
sessions.pause(s["id"])
said.append(await collect(s["id"], "two"))
sessions.resume(s["id"])
said.append(await collect(s["id"], "two"))
await sessions.end_session(s["id"])
said.append(await collect(s["id"], "three"))
_, over = sessions.resume(s["id"])
return [said, wrong, over, (await sessions.get(s["id"]))[0]["state"], len((await sessions.list())[0])]
        """,
    )  # fmt: skip
    said, wrong, over, state, count = got
    assert said[0].endswith("tool_result: ls!, text: first") and "is paused" in said[1]
    assert said[2] == "text: second" and "is ended" in said[3] and "has ended" in over
    assert "did you mean `plan`?" in wrong or "unknown mode `plann`" in wrong
    assert (state, count) == ("ended", 2)


def test_turns_are_taken_back_copied_and_added_by_hand(here: HomeDir, language: str) -> None:
    got = result(
        here, language,
        """
        local s = sessions.create({agent_card = "explore", model = "MODEL"})
        collect(s.id, "one")
        collect(s.id, "two")
        local copy = sessions.fork(s.id, 3)
        local depth, undone = sessions.undo_depth(s.id), sessions.undo(s.id)
        sessions.inject(s.id, "user", "by the way")
        local said = {}
        for _, message in ipairs(sessions.messages(s.id)) do said[#said + 1] = message.content end
        local again = collect(s.id, "two again")
        return {copy.messages_copied, #sessions.messages(copy.id), depth, undone, sessions.can_undo(copy.id), said, again,
          sessions.get(copy.id).parent_id == s.id, collect(copy.id, "other")}
        """,
        """
s, _ = await sessions.create(agent_card="explore", model="MODEL")
await collect(s["id"], "one")
await collect(s["id"], "two")
copy, _ = sessions.fork(s["id"], 3)
depth, undone = sessions.undo_depth(s["id"])[0], sessions.undo(s["id"])[0]
sessions.inject(s["id"], "user", "by the way")
said = [m["content"] for m in sessions.messages(s["id"])[0]]
again = await collect(s["id"], "two again")
return [copy["messages_copied"], len(sessions.messages(copy["id"])[0]), depth, undone, sessions.can_undo(copy["id"])[0], said, again,
    (await sessions.get(copy["id"]))[0]["parent_id"] == s["id"], await collect(copy["id"], "other")]
        """,
    )  # fmt: skip
    assert got == [
        3, 4, 2, 1, True, ["one", "I look", "(empty folder)", "first", "by the way"], "text: second", True, "text: second",
    ]  # fmt: skip


def test_events_are_heard_until_nobody_listens_any_more(here: HomeDir, language: str) -> None:
    got = result(
        here, language,
        """
        local s = sessions.create({agent_card = "explore", model = "MODEL"})
        local next_event, types = sessions.subscribe(s.id), {}
        local id = sessions.send_message(s.id, "one")
        sessions.send_message(s.id, "two")
        repeat
          local event = next_event()
          types[#types + 1] = event.type .. (event.session_id == s.id and "" or "?")
        until event.type == "message_complete" and event.data.full_response == "second"
        local ended = sessions.collect_subagents({s.id, "none"}, 10)
        return {types, sessions.unsubscribe(s.id), next_event() == nil, id:sub(1, 4), ended[1].status, ended[1].output, ended[2].status}
        """,
        """
s, _ = await sessions.create(agent_card="explore", model="MODEL")
next_event, types = sessions.subscribe(s["id"])[0], []
id, _ = await sessions.send_message(s["id"], "one")
await sessions.send_message(s["id"], "two")
while True:
    event = await next_event()
    types.append(event["type"] + ("" if event["session_id"] == s["id"] else "?"))
    if event["type"] == "message_complete" and event["data"]["full_response"] == "second":
        break
(first, none), _ = await sessions.collect_subagents([s["id"], "none"], 10)
gone = sessions.unsubscribe(s["id"])[0]
return [types, gone, await next_event() is None, id[:4], first["status"], first["output"], none["status"]]
        """,
    )  # fmt: skip
    types, *others = got
    assert others == [True, True, "msg-", "completed", "second", "unknown"]
    assert types == [
        "user_message", "thinking", "text_delta", "segment_complete", "tool_call", "tool_result", "text_delta", "message_complete",
        "user_message", "text_delta", "message_complete",
    ]  # fmt: skip


def test_a_message_to_this_session_is_a_prompt_of_its_own(here: HomeDir, language: str) -> None:
    got = result(
        here, language,
        "local id = sessions.send_message(ctx.session_id, 'and this')\nreturn {id:sub(1, 4), #sessions.messages(ctx.session_id)}",
        "id, _ = await sessions.send_message(ctx.session_id, 'and this')\nreturn [id[:4], len(sessions.messages(ctx.session_id)[0])]",
    )  # fmt: skip
    assert got == ["msg-", 0]
    assert [entry["content"] for entry in here.log() if entry["entry_type"] == "message"] == [
        "go",
        "done",
        "and this",
        "done",
    ]


def test_a_question_beside_it_leaves_no_trace_in_it(here: HomeDir, language: str, tmp_path: Path) -> None:
    got = result(
        here, language,
        """
        local s = sessions.create({model = "MODEL"})
        local beside = {sessions.complete(nil, {prompt = "what?", system = "Be brief."}), (sessions.complete(s.id, "what?"))}
        local main, other = sessions.cache_stats(ctx.session_id), sessions.cache_stats(s.id)
        return {beside[1], beside[2], #sessions.messages(s.id), main.requests, other.requests}
        """,
        """
s, _ = await sessions.create(model="MODEL")
beside = [(await sessions.complete(None, prompt="what?", system="Be brief."))[0], (await sessions.complete(s["id"], "what?"))[0]]
main, other = sessions.cache_stats(ctx.session_id)[0], sessions.cache_stats(s["id"])[0]
return [*beside, len(sessions.messages(s["id"])[0]), main["requests"], other["requests"]]
        """,
    )  # fmt: skip
    assert got == ["done", "I look", 0, 2, 0]


def test_another_process_goes_on_with_it(here: HomeDir, language: str) -> None:
    first = result(
        here, language,
        'local s = sessions.create({model = "MODEL"})\ncollect(s.id, "one")\nreturn s.id',
        's, _ = await sessions.create(model="MODEL")\nawait collect(s["id"], "one")\nreturn s["id"]',
    )  # fmt: skip
    got = result(
        here, language,
        f'return {{collect("{first}", "two"), #sessions.list(), sessions.get("nobody") == nil}}',
        f'return [await collect("{first}", "two"), len((await sessions.list())[0]), (await sessions.get("nobody"))[0] is None]',
    )  # fmt: skip
    assert got == ["text: second", 2, True]


def test_an_answer_that_does_not_come_ends_the_message(here: HomeDir, language: str, tmp_path: Path) -> None:
    script(tmp_path, "slow", "delay: 600s\n")
    source = f"scripted:{tmp_path}/slow.txt"
    got = result(
        here, language,
        f"""
        local s = sessions.create({{model = "{source}"}})
        local ok, why = pcall(collect, s.id, "go", {{timeout = 0.5}})
        return {{ok, tostring(why), sessions.get(s.id).busy, sessions.cancel(s.id)}}
        """,
        f"""
s, _ = await sessions.create(model="{source}")
try:
    ok, why = True, await collect(s["id"], "go", 0.5)
except Exception as error:
    ok, why = False, str(error)
return [ok, why, (await sessions.get(s["id"]))[0]["busy"], (await sessions.cancel(s["id"]))[0]]
        """,
    )  # fmt: skip
    ok, why, busy, ran = got
    assert (ok, busy, ran) == (False, False, False) and "no answer within 0.5 s" in why
    (row,) = json.loads(cru("tasks", "--json", home=here).out)
    assert row["status"] == "cancelled"
