"""Sub-agents: what they are given, what they may do, and that the rules of the agent above hold."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.core.agents.support import ClosedWorld, call, records, script, task_log, task_results
from tests.core.turn.support import Ext, Person, World, always
from tests.kit.waiting import wait_until

from cru.core.agents.record import TaskStatus
from cru.core.agents.sub_agents import AgentTasks
from cru.core.events.answers import Answer, cancel, handled, inject, transform
from cru.core.events.payloads import TaskCompleted, TaskFailed, TaskSpawned, ToolBeforeCall, ToolsSelect
from cru.core.events.stamp import Event
from cru.core.guard.rules.gate import PermissionReply
from cru.core.guard.trust.accepted_files import TrustStore

DONE = "---\ntext: all is done\n"
ANSWER = "text: it is in README.md\n"


def make_tasks_of(world: World) -> AgentTasks:
    async def make() -> AgentTasks:
        spawner = world.session.parts.tool_services.spawner
        assert spawner is not None
        tasks = spawner()
        await world.session.close()
        assert isinstance(tasks, AgentTasks)
        return tasks

    return asyncio.run(make())


def world_with(tmp_path: Path, calls: str, *extensions: object, **more: object) -> World:
    return ClosedWorld(tmp_path, f"{calls}\n{DONE}", *extensions, **more)


def test_the_answer_of_a_sub_agent_is_the_result_and_its_conversation_is_its_own(tmp_path: Path) -> None:
    child = script(tmp_path, "child", ANSWER)
    world = world_with(tmp_path, call("explore", child, description="find it"))
    assert world.run("go").response == "all is done"
    assert world.results() == ["it is in README.md"]
    (record,) = records(world)
    assert (record.status, record.agent, record.description, record.depth) == (
        TaskStatus.COMPLETED,
        "explore",
        "find it",
        1,
    )
    assert record.call_id == "call_0_0" and record.parent == "main" and record.result == "it is in README.md"
    assert [entry.content for entry in task_log(world, record) if entry.entry_type == "message"] == [
        "do explore",
        "it is in README.md",
    ]
    assert all("do explore" not in entry.content for entry in world.log("message"))


def test_the_system_prompt_is_that_of_the_card_with_the_guides_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "home" / "agents").mkdir(parents=True)
    (tmp_path / "home" / "agents" / "poet.md").write_text(
        "---\nname: poet\ndescription: writes\n---\nYou write verse.\n"
    )
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "AGENTS.md").write_text("Rhyme.\n")
    world = world_with(tmp_path, call("poet", script(tmp_path, "child", ANSWER)))
    world.run("go")
    spans = tmp_path / "home" / "contexts" / "main" / "tasks" / records(world)[0].id / "spans"
    texts = "\n".join(file.read_text() for file in spans.iterdir())
    assert "You write verse." in texts and "Rhyme." in texts and "You are cru" not in texts


def test_agents_of_the_users_own_are_named_to_the_model(tmp_path: Path) -> None:
    (tmp_path / "home" / "agents").mkdir(parents=True)
    (tmp_path / "home" / "agents" / "poet.md").write_text("---\ndescription: writes verse\n---\nYou write verse.\n")
    (tmp_path / "project" / ".claude" / "agents").mkdir(parents=True)
    (tmp_path / "project" / ".claude" / "agents" / "evil.md").write_text("---\ndescription: trust me\n---\nx\n")
    world = ClosedWorld(tmp_path, "text: ok\n")
    world.run("go")
    system = "\n".join(span.text for span in world.requests[0].system)
    assert "--- AGENTS ---\npoet: writes verse" in system and "trust me" not in system


def test_a_card_of_a_project_counts_once_it_is_trusted(tmp_path: Path) -> None:
    card = tmp_path / "project" / ".cru" / "agents" / "poet.md"
    card.parent.mkdir(parents=True)
    card.write_text("---\ndescription: writes verse\n---\nYou write verse.\n")
    child = script(tmp_path, "child", ANSWER)
    world = world_with(tmp_path, call("poet", child))
    world.run("go")
    assert "comes from a project that is not trusted" in world.results()[0]
    TrustStore(tmp_path / "home" / "trust.json").trust(card)
    again = ClosedWorld(tmp_path, f"{call('poet', child)}\n{DONE}")
    asyncio.run(again.session.archive())
    again.run("go")
    assert again.results()[-1] == "it is in README.md"


def test_an_agent_has_the_tools_of_its_card_and_no_more(tmp_path: Path) -> None:
    child = script(
        tmp_path,
        "child",
        'call: write {"file_path": "x", "content": "y"}\ncall: bash {"command": "true"}\n---\ntext: no\n',
    )
    world = world_with(tmp_path, call("explore", child), settings={"mode": "trust"})
    world.run("go")
    results = task_results(world, records(world)[0])
    assert len(results) == 2 and all(text.startswith("there is no tool") for text in results)
    assert not (tmp_path / "project" / "x").exists()


@pytest.mark.parametrize("tools", [["read"], ["Read"]])
def test_a_call_may_narrow_the_tools_and_never_widen_them(tmp_path: Path, tools: list[str]) -> None:
    child = script(
        tmp_path,
        "child",
        'call: glob {"pattern": "*"}\ncall: write {"file_path": "x", "content": "y"}\n---\ntext: no\n',
    )
    world = world_with(tmp_path, call("explore", child, tools=[*tools, "write"]), settings={"mode": "trust"})
    world.run("go")
    assert all(text.startswith("there is no tool") for text in task_results(world, records(world)[0]))


def test_a_guard_of_calls_holds_in_sub_agents_and_hears_whose_call_it_is(tmp_path: Path) -> None:
    heard: list[tuple[str, int, str]] = []

    def guard(event: Event[ToolBeforeCall]) -> Answer | None:
        heard.append((event.payload.name, event.stamp.depth, event.stamp.parent_call_id))
        return cancel("not here") if event.payload.name == "bash" else None

    turns: list[int] = []
    child = script(tmp_path, "child", 'call: bash {"command": "touch bad"}\n---\ntext: no\n')
    handlers = {"tool:before_call": guard, "turn:complete": lambda event: turns.append(event.stamp.depth)}
    world = world_with(tmp_path, call("general", child), Ext(handlers), settings={"mode": "trust"})
    world.run("go")
    assert heard == [("task", 0, ""), ("bash", 1, "call_0_0")]
    assert task_results(world, records(world)[0]) == ["Blocked by ext: not here"]
    assert not (tmp_path / "project" / "bad").exists()
    assert turns == [0]  # of session and turn events a handler hears the main agent's alone


def test_a_deny_rule_holds_in_sub_agents(tmp_path: Path) -> None:
    child = script(tmp_path, "child", 'call: bash {"command": "rm x"}\n---\ntext: no\n')
    settings = {"mode": "trust", "permissions": {"deny": ["bash:rm *"]}}
    world = world_with(tmp_path, call("general", child), settings=settings)
    world.run("go")
    assert "the rule `bash:rm *`" in task_results(world, records(world)[0])[0]


def test_a_rule_refuses_an_agent(tmp_path: Path) -> None:
    child = script(tmp_path, "child", ANSWER)
    world = world_with(
        tmp_path,
        f"{call('general', child)}\n{call('explore', child)}",
        settings={"permissions": {"deny": ["task:general"]}},
    )
    world.run("go")
    assert "the rule `task:general`" in world.results()[0] and world.results()[1] == "it is in README.md"


def test_a_question_of_a_sub_agent_goes_to_the_person_and_names_it(tmp_path: Path) -> None:
    person = Person(PermissionReply("once"))
    child = script(tmp_path, "child", 'call: write {"file_path": "x", "content": "y"}\n---\ntext: yes\n')
    world = world_with(tmp_path, call("general", child), asker=person)
    world.run("go")
    (question,) = person.questions
    assert question.tool == "write" and question.agent == f"general {records(world)[0].id}"
    assert (tmp_path / "project" / "x").read_text() == "y"


def test_where_nobody_can_be_asked_a_sub_agent_is_refused(tmp_path: Path) -> None:
    child = script(tmp_path, "child", 'call: write {"file_path": "x", "content": "y"}\n---\ntext: no\n')
    heard: list[str] = []
    hears = Ext([("interaction:requested", lambda e: heard.append(e.payload.prompt), {"scope": "tree"})])
    world = world_with(tmp_path, call("general", child), hears)
    world.run("go")
    assert "nobody can be asked here" in task_results(world, records(world)[0])[0]
    assert heard == []


def test_the_mode_of_a_card_is_never_wider_than_that_of_the_parent(tmp_path: Path) -> None:
    folder = tmp_path / "home" / "agents"
    folder.mkdir(parents=True)
    (folder / "bold.md").write_text("---\nname: bold\ndescription: x\npermissionMode: bypassPermissions\n---\nGo.\n")
    (folder / "shy.md").write_text("---\nname: shy\ndescription: x\nmode: plan\n---\nLook.\n")
    child = script(tmp_path, "child", 'call: write {"file_path": "x", "content": "y"}\n---\ntext: no\n')
    world = world_with(tmp_path, call("bold", child))
    world.run("go")
    assert "nobody can be asked here" in task_results(world, records(world)[0])[0]
    (tmp_path / "b").mkdir()
    other = ClosedWorld(tmp_path / "b", f"{call('shy', child)}\n{DONE}", settings={"mode": "trust"})
    (tmp_path / "b" / "home" / "agents").mkdir()
    (tmp_path / "b" / "home" / "agents" / "shy.md").write_text((folder / "shy.md").read_text())
    other.run("go")
    assert "plan mode only reads" in task_results(other, records(other)[0])[0]


def test_agents_go_no_deeper_than_the_limit(tmp_path: Path) -> None:
    deepest = script(tmp_path, "deepest", f"{call('general', 'x')}\n---\ntext: alone\n")
    child = script(tmp_path, "child", f"{call('general', deepest)}\n---\ntext: below\n")
    world = world_with(tmp_path, call("general", child))
    world.run("go")
    first, second = records(world)
    assert (second.depth, second.parent) == (2, first.id)
    assert task_results(world, second) == ["there is no tool `task`; did you mean `task_output`?"]


def test_a_handler_refuses_rewrites_adds_to_or_does_a_task(tmp_path: Path) -> None:
    child = script(tmp_path, "child", ANSWER)
    answers = iter(
        [
            cancel("too dear"),
            Answer(changes=transform(prompt="do less").changes, context=("be quick",)),
            handled("done it"),
        ]
    )
    extension = Ext({"task:spawned": lambda event: next(answers)})
    world = world_with(tmp_path, "\n".join([call("explore", child)] * 3), extension)
    world.run("go")
    assert world.results()[0].startswith("refused by ext: too dear")
    done = {record.result: record for record in records(world)}
    assert set(done) == {"it is in README.md", "done it"}
    prompt, resolved, *_ = task_log(world, done["it is in README.md"])
    assert prompt.content == "do less" and resolved.metadata["context"] == ["be quick"]


def test_a_guard_of_tasks_that_fails_refuses_them(tmp_path: Path) -> None:
    def broken(event: Event) -> None:
        raise ValueError("oh")

    world = world_with(tmp_path, call("explore", script(tmp_path, "child", ANSWER)), Ext({"task:spawned": broken}))
    world.run("go")
    assert records(world) == [] and "oh" in world.results()[0]


def test_what_ends_in_the_background_comes_as_a_prompt_of_its_own(tmp_path: Path) -> None:
    child = script(tmp_path, "child", ANSWER)
    text = f"{call('explore', child, background=True)}\n---\ntext: I wait\n---\ntext: thank you\n"
    extension = Ext({"task:completed": always(inject("check it"))})
    world = ClosedWorld(tmp_path, text, extension)
    assert world.run("go").response == "thank you"
    (record,) = records(world)
    (prompt,) = [entry for entry in world.log("message") if entry.metadata.get("source") == "task"]
    assert prompt.content == (
        f"[background task {record.id} (sub-agent explore: do explore) is done]\nit is in README.md\n\ncheck it"
    )
    assert [(spawned.id, spawned.background) for spawned in world.of(TaskSpawned)] == [(record.id, True)]
    assert [(ended.id, ended.result) for ended in world.of(TaskCompleted)] == [(record.id, "it is in README.md")]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"agent": "explroe"}, "there is no agent 'explroe'\n  did you mean `explore`?"),
        ({"agent": "explore", "model": "scripted:{folder}/nothing.txt"}, "failed: error: "),
        ({"agent": "explore", "tools": ["nope"]}, "`tools`: there is no tool `nope`\n  there are "),
        ({"agent": "explore", "tools": ["read", "bsh"]}, "`tools`: there is no tool `bsh`\n  did you mean `bash`?"),
        ({"agent": "explore", "tools": ["write"]}, "the agent explore may use none of write\n  leave `tools` out"),
        ({"agent": "explore", "isolation": "worktree"}, "isolation `worktree` needs a git repository"),
    ],
)
def test_a_task_that_cannot_be_done_is_an_error_of_the_call(
    tmp_path: Path, arguments: dict[str, str], problem: str
) -> None:
    arguments = {
        name: value.format(folder=tmp_path) if isinstance(value, str) else value for name, value in arguments.items()
    }
    world = world_with(tmp_path, call(**{"model": script(tmp_path, "child", ANSWER), **arguments}))
    world.run("go")
    assert problem in world.results()[0]
    assert all(record.status is TaskStatus.FAILED for record in records(world))


def test_no_more_tasks_than_the_limit_and_no_more_at_once(tmp_path: Path) -> None:
    child = script(tmp_path, "child", ANSWER)
    settings = {"tasks": {"max_tasks": 2, "max_concurrent": 1}}
    world = world_with(tmp_path, "\n".join([call("explore", child)] * 3), settings=settings)
    world.run("go")
    assert sorted(text.partition(",")[0] for text in world.results()) == [
        "it is in README.md", "it is in README.md", "this session has started 2 tasks",
    ]  # fmt: skip
    first, second = records(world)
    assert second.started >= first.ended


def test_no_sub_agents_at_all_is_told_in_words(tmp_path: Path) -> None:
    child = script(tmp_path, "child", ANSWER)
    world = world_with(tmp_path, call("explore", child), settings={"tasks": {"max_depth": 0}})
    world.run("go")
    assert world.results()[0].startswith("the setting tasks.max_depth = 0 allows no sub-agents at all: do it yourself")
    assert records(world) == []


def test_a_task_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    child = script(tmp_path, "child", "text: so far\ndelay: 600s\n")
    world = world_with(tmp_path, call("explore", child), settings={"tasks": {"timeout": 0.3}})
    world.run("go")
    assert "it took longer than 0.3 s and was ended" in world.results()[0]
    assert records(world)[0].status is TaskStatus.FAILED
    assert [failed.kind for failed in world.of(TaskFailed)] == ["subagent"]


def test_what_ends_the_turn_ends_the_agents_below(tmp_path: Path) -> None:
    deepest = script(tmp_path, "deepest", "delay: 600s\n")
    child = script(tmp_path, "child", f"{call('general', deepest)}\n---\ntext: never\n")
    world = world_with(tmp_path, call("general", child))

    async def interrupted() -> str:
        world.session.submit("go")
        running = asyncio.ensure_future(world.session.run())
        await asyncio.to_thread(wait_until, lambda: [r.status for r in records(world)] == [TaskStatus.RUNNING] * 2)
        world.session.interrupt()
        result = await running
        await world.session.close()
        assert result is not None
        return result.cause

    assert asyncio.run(interrupted()) == "interrupted"
    assert [record.status for record in records(world)] == [TaskStatus.CANCELLED] * 2


def test_an_answer_of_ten_megabytes_is_saved_and_shown_in_part(tmp_path: Path) -> None:
    child = script(tmp_path, "child", f"text: {'x' * 10_000_000}\n")
    world = world_with(tmp_path, call("explore", child))
    world.run("go")
    assert len(world.results()[0]) < 10_000


def test_a_question_two_agents_deep_reaches_the_person_and_names_both(tmp_path: Path) -> None:
    person = Person(PermissionReply("once"))
    deepest = script(tmp_path, "deepest", 'call: write {"file_path": "x", "content": "y"}\n---\ntext: yes\n')
    child = script(tmp_path, "child", f"{call('general', deepest)}\n---\ntext: below\n")
    world = world_with(tmp_path, call("general", child), asker=person, settings={"tasks": {"timeout": 5}})
    world.run("go")
    first, second = records(world)
    (question,) = person.questions
    assert question.agent == f"general {first.id} > general {second.id}"
    assert (tmp_path / "project" / "x").read_text() == "y"


def test_sessions_of_one_process_do_not_wait_for_one_anothers_questions(tmp_path: Path) -> None:
    worlds = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        worlds.append(world_with(tmp_path / name, DONE))
    locks = {id(make_tasks_of(world).shared.asking) for world in worlds}
    assert len(locks) == 2


def test_what_hides_tools_from_the_model_hides_them_from_its_sub_agents(tmp_path: Path) -> None:
    plugins = tmp_path / "home" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "quiet.lua").write_text('cru.tools.set_active(nil, { "task", "read" })\n')
    offered: list[tuple[int, tuple[str, ...]]] = []

    def note(event: Event[ToolsSelect]) -> None:
        offered.append((event.stamp.depth, tuple(event.payload.tools)))

    late = Ext([("tools:select", note, {"scope": "tree", "priority": 900})])
    world = world_with(tmp_path, call("general", script(tmp_path, "child", ANSWER)), late)
    world.run("go")
    assert offered == [(0, ("read", "task")), (1, ("read", "task"))]
