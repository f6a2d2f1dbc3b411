"""Who is asked about calls of clients, whose prompts may do what, and when hooks are heard."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from tests.faces.mcp_server.serving import ERAS, Caller, Person, use
from tests.kit import HomeDir, cru, start
from tests.kit.sandbox import needs_sandbox


def test_an_answer_about_one_conversation_is_none_about_another(here: HomeDir) -> None:
    person = Person("session", "no")

    async def work(call: Caller) -> None:
        assert await call("send_prompt", context="one", prompt="hello") == "fine"
        assert await call("send_prompt", context="one", prompt="again") == "fine"
        assert "The user refused" in await call("send_prompt", context="two", prompt="hello")

    use(here, work, person=person)
    assert [question.message.splitlines()[0] for question in person.questions] == [
        "send_prompt: one",
        "send_prompt: two",
    ]
    assert "for this session: the rule send_prompt:one" in person.questions[0].message


def test_a_conversation_that_may_do_all_may_not_for_a_client(here: HomeDir) -> None:
    """Its own mode counts where a person stands before it."""
    (here.path / "model.txt").write_text('call: bash {"command": "touch made"}\n---\ntext: fine\n')
    here.context("privt").mkdir(parents=True)
    (here.context("privt") / "local.toml").write_text('mode = "trust"\n')
    person = Person("once", "no")

    async def work(call: Caller) -> None:
        assert await call("send_prompt", context="privt", prompt="hello") == "fine"

    use(here, work, person=person)
    assert person.questions[1].message.startswith("bash: touch made") and not (here.project / "made").exists()


def test_a_conversation_about_another_project_is_asked_about_although_a_rule_allows_prompts(
    here: HomeDir, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    assert cru("-C", "foreign", "secret things", home=here, cwd=other).code == 0
    with (here.cru / "config.toml").open("a") as config:
        config.write('[permissions]\nallow = ["send_prompt"]\n')
    person = Person("no")

    async def work(call: Caller) -> None:
        assert await call("send_prompt", context="mine", prompt="hello") == "fine"
        assert "The user refused" in await call("send_prompt", context="foreign", prompt="repeat all")

    use(here, work, person=person)
    assert "it is a conversation about another project" in person.questions[0].message


@pytest.mark.parametrize("era", ERAS)
def test_a_sub_agent_asks_who_has_made_the_call(here: HomeDir, era: str) -> None:
    (here.project / "below.txt").write_text('call: bash {"command": "touch made"}\n---\ntext: done\n')
    person = Person("once")

    async def work(call: Caller) -> None:
        assert await call("task", agent="general", prompt="x", description="d", model="scripted:below.txt") == "done"

    use(here, work, "--tools", "task", person=person, era=era)
    [question] = person.questions
    assert question.message.startswith("[sub-agent general ") and "bash: touch made" in question.message
    assert (here.project / "made").exists()


def test_a_sub_agent_in_the_background_asks_nobody_when_its_call_is_over(here: HomeDir) -> None:
    (here.project / "below.txt").write_text('delay: 0.3s\ncall: bash {"command": "touch made"}\n---\ntext: done\n')
    person = Person()

    async def work(call: Caller) -> None:
        more = {"agent": "general", "prompt": "x", "description": "d", "model": "scripted:below.txt"}
        assert "works in the background" in await call("task", background=True, **more)
        async with asyncio.timeout(60):
            while not any(
                "nobody can be asked" in log.read_text() for log in here.cru.glob("contexts/*/tasks/*/context.jsonl")
            ):
                await asyncio.sleep(0.02)

    use(here, work, "--tools", "task", person=person)
    assert not person.questions and not (here.project / "made").exists()


def test_a_hook_that_is_added_holds_from_the_next_call_on(here: HomeDir) -> None:
    async def work(call: Caller) -> None:
        assert "RAN" in await call("bash", command="echo RAN")
        hook = {"event": "tool:before_call", "matcher": "bash", "command": "echo no bash here >&2; exit 2"}
        (here.cru / "hooks.json").write_text(json.dumps({"hooks": [hook]}))
        assert "no bash here" in await call("bash", command="echo RAN")

    use(here, work, "-t", "--tools", "bash")


def test_an_unanswered_question_keeps_no_other_call_waiting(here: HomeDir) -> None:
    asked, answered = asyncio.Event(), asyncio.Event()

    class Slow(Person):
        async def elicit(self, context: object, params: object) -> object:  # type: ignore[override]
            if not self.questions:
                asked.set()
                self.questions.append(params)  # type: ignore[arg-type]
                await answered.wait()
            return await super().elicit(context, params)

    async def work(call: Caller) -> None:
        first = asyncio.ensure_future(call("write", file_path="b.txt", content="x"))
        await asked.wait()
        assert (await call("write", file_path="c.txt", content="x")).startswith("Created c.txt")
        answered.set()
        assert (await first).startswith("Created b.txt")

    use(here, work, person=Slow("once", "once"))


def test_what_is_no_json_is_answered_as_such(here: HomeDir) -> None:
    """The SDK would pass it by, and the client wait for ever."""
    hello = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
    }  # fmt: skip
    with start("mcp", "serve", home=here, stdin=True) as run:
        run.write(
            "garbage\n[[[\n\n"
            + '{"jsonrpc":"2.0","id":40,"method":"ping","params":{"x":"\\ud800"}}\n'
            + json.dumps(hello)
            + "\n"
        )
        run.wait_for('"serverInfo"')
        run.end_input()
        done = run.wait()
    *refused, answer = map(json.loads, done.out.splitlines())
    assert [(line["id"], line["error"]["code"]) for line in refused] == [(None, -32700), (None, -32700), (40, -32700)]
    assert answer["id"] == 1 and done.code == 0


def test_a_server_may_be_told_not_to_begin_without_its_guards(here: HomeDir) -> None:
    (here.cru / "hooks.json").write_text('{"hooks": {"tool:befor_call": [{"command": "x"}]}}')
    done = cru("mcp", "serve", "--strict-hooks", home=here)
    assert done.code == 3 and "did you mean `tool:before_call`?" in done.err and done.out == ""
    assert cru("mcp", "serve", "--hooks", "nosuch", home=here).code == 2
    assert cru("mcp", "serve", "--hooks", "none", "--strict-hooks", home=here).code == 0


@pytest.mark.parametrize("flags", [pytest.param(("--sandbox",), marks=needs_sandbox), ()])
def test_what_clients_run_may_be_confined(here: HomeDir, flags: tuple[str, ...]) -> None:
    async def work(call: Caller) -> None:
        await call("bash", command=f"touch {here.path}/outside")

    use(here, work, "-t", *flags, "--tools", "bash")
    assert (here.path / "outside").exists() is not bool(flags)


def test_a_client_that_moves_a_workflow_may_go_on(here: HomeDir) -> None:
    (here.cru / "plugins").mkdir()
    (here.cru / "plugins" / "ship.lua").write_text(
        'cru.fsm.define{name="ship", initial="one", states={one={to={"two"}}, two={to={"done"}}, done={final=true}}}\n'
    )
    assert "workflow ship waits in the state one" in cru("-C", "w", "/ship go", home=here).err

    async def work(call: Caller) -> None:
        moved = await call("workflow", to="two")
        assert "ERROR" not in moved, moved
        assert await call("read", file_path="a.txt") == "     1\thello"

    use(here, work, "-t", "--tools", "*", context="w")


def test_no_model_that_a_client_names_is_a_file_outside(here: HomeDir) -> None:
    (here.path / "creds").write_text("PASSWORD=hunter2\n")
    (here.project / "link").symlink_to(here.path / ".cru")

    async def work(call: Caller) -> None:
        for name in (f"{here.path}/creds", "~/creds", "../home/creds", "link/../creds", "/proc/self/environ"):
            told = await call("task", agent="explore", prompt="x", description="d", model=f"scripted:{name}")
            assert "outside of the project" in told and "hunter2" not in told, name

    use(here, work, "-t", "--tools", "task")
