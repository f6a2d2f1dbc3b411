from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.core.turn.support import Ext, MadeTool, World, always, payload
from tests.kit.waiting import PATIENCE

from cru.core.events.answers import Answer, cancel, halt
from cru.core.events.payloads import ToolBatchCompleted, ToolCompleted, ToolFailed
from cru.core.events.stamp import Event
from cru.core.tools.protocol import ToolResult

THREE = "call: a {}\ncall: b {}\ncall: c {}\n---\ntext: end\n"


def named(name: str, **more: Any) -> MadeTool:
    return MadeTool(name, lambda _args: f"did {name}", **more)


def gated(tmp_path: Path, script: str, *extensions: Ext, parallel: bool) -> tuple[World, list[str]]:
    """Three tools that note when they begin and end; `a` takes longest."""
    marks: list[str] = []

    def tool(name: str, seconds: float) -> MadeTool:
        async def work(_args: dict[str, Any]) -> str:
            marks.append(f"+{name}")
            await asyncio.sleep(seconds)
            marks.append(f"-{name}")
            return f"did {name}"

        return MadeTool(name, work, parallel=parallel)

    world = World(tmp_path, script, *extensions).tools(tool("a", 0.06), tool("b", 0.03), tool("c", 0.0))
    return world, marks


def test_parallel_tools_overlap_and_are_logged_as_they_finish_but_sent_in_the_models_order(tmp_path: Path) -> None:
    world, marks = gated(tmp_path, THREE, parallel=True)
    world.run("go")
    assert marks[:3] == ["+a", "+b", "+c"]
    assert world.results() == ["did c", "did b", "did a"]
    assert [text for role, text in world.said() if role == "tool"] == ["did a", "did b", "did c"]


def test_other_tools_run_one_after_another(tmp_path: Path) -> None:
    world, marks = gated(tmp_path, THREE, parallel=False)
    world.run("go")
    assert marks == ["+a", "-a", "+b", "-b", "+c", "-c"]


def test_all_parallel_calls_of_a_reply_run_at_once_and_none_beside_one_that_must_be_alone(tmp_path: Path) -> None:
    """Twice fifty calls that end only when all fifty of them run, with one between them that runs alone."""
    running: list[str] = []
    at_once: list[list[str]] = []
    called: list[str] = []
    ended: list[str] = []
    all_run = asyncio.Event()

    async def read(args: dict[str, Any]) -> str:
        running.append("read")
        if len(running) == 50:
            at_once.append(list(running))
            all_run.set()
        await asyncio.wait_for(all_run.wait(), PATIENCE)
        running.pop()
        return f"did {args['n']}"

    def write(_args: dict[str, Any]) -> str:
        at_once.append([*running, "write"])
        all_run.clear()
        return "wrote"

    calls = [
        *(f'call: read {{"n": {n}}}' for n in range(50)),
        "call: write {}",
        *(f'call: read {{"n": {n}}}' for n in range(50, 100)),
    ]
    ext = Ext({
        "tool:called": lambda e: called.append(str(payload(e).args.get("n", "write"))),
        "tool:settled": lambda e: ended.append(payload(e).name),
    })  # fmt: skip
    world = World(tmp_path, "\n".join([*calls, "---", "text: end", ""]), ext)
    world.tools(MadeTool("read", read, parallel=True), MadeTool("write", write)).run("go")
    assert at_once == [["read"] * 50, ["write"], ["read"] * 50]
    assert called == [*map(str, range(50)), "write", *map(str, range(50, 100))]
    assert ended == [*["read"] * 50, "write", *["read"] * 50]
    sent = [text for role, text in world.said() if role == "tool"]
    assert sent == [*(f"did {n}" for n in range(50)), "wrote", *(f"did {n}" for n in range(50, 100))]


TURNS = ["decide a", "run a", "decide b", "run b", "decide c", "run c"]
AHEAD = ["decide a", "decide b", "decide c", "run a", "run b", "run c"]
SEQUENCES: dict[str, tuple[bool, tuple[bool, ...], list[str]]] = {
    "no call is decided before the one ahead of it has run": (False, (False,), TURNS),
    "calls that run together are decided together": (True, (False,), AHEAD),
    "handlers that look ahead hear all calls first": (False, (True,), AHEAD),
    "so do several of them": (False, (True, True), AHEAD),
    "beside one that does not they do not": (False, (True, False), TURNS),
}
"""Whether the tools may run together, whether each handler looks ahead, and what comes after what."""


@pytest.mark.parametrize("name", SEQUENCES)
def test_calls_are_decided_group_by_group(tmp_path: Path, name: str) -> None:
    parallel, ahead, expected = SEQUENCES[name]
    order: list[str] = []

    def guard(looks_ahead: bool, is_first: bool) -> Any:
        def decide(event: Event) -> None:
            if is_first:
                order.append(f"decide {payload(event).name}")

        decide.ahead = looks_ahead  # type: ignore[attr-defined]
        return decide

    ext = Ext([
        *(("tool:before_call", guard(each, not number)) for number, each in enumerate(ahead)),
        ("tool:called", lambda e: order.append(f"run {payload(e).name}")),
    ])  # fmt: skip
    world, _ = gated(tmp_path, THREE, ext, parallel=parallel)
    world.run("go")
    assert order == expected


def test_a_guard_knows_what_the_calls_before_it_did(tmp_path: Path) -> None:
    """ "One deploy only": the guard looks for what the deploy leaves behind."""
    done: list[str] = []

    def guard(_event: Event) -> Answer | None:
        return cancel("there was one") if done else None

    def deploy(_args: dict[str, Any]) -> str:
        done.append("deploy")
        return "deployed"

    world = World(tmp_path, "call: deploy {}\n" * 3 + "---\ntext: end\n", Ext({"tool:before_call": guard}))
    world.tools(MadeTool("deploy", deploy)).run("go")
    assert done == ["deploy"]
    assert world.results() == ["deployed", "Blocked by ext: there was one", "Blocked by ext: there was one"]


def _make_repository(folder: Path) -> None:
    for name in ("objects", "refs"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main")


def _set_hooks(folder: Path) -> None:
    (folder.parent / ".git").mkdir()
    (folder.parent / ".git/config").write_text(f"[core]\nhooksPath = {folder.name}\n")


CHANGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "nothing": (lambda _folder: None, ""),
    "git takes hooks from the folder": (_set_hooks, "git runs what it says"),
    "the folder is a repository": (_make_repository, "git runs what it says"),
    "the folder leads out of the project": (
        lambda folder: folder.symlink_to(folder.parents[1]),
        "is outside the project",
    ),
}
"""What a call makes of a folder into which the next one writes, and why that one is refused then."""


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("ahead", [True, False])
def test_rules_know_what_the_calls_before_it_did_although_handlers_look_ahead(
    tmp_path: Path, name: str, ahead: bool
) -> None:
    change, why = CHANGES[name]

    def hear(_event: Event) -> None:
        pass

    hear.ahead = ahead  # type: ignore[attr-defined]
    script = 'call: change {}\ncall: write {"file_path": "f/config", "content": "x"}\n---\ntext: end\n'

    def work(_args: dict[str, Any]) -> str:
        change(tmp_path / "project/f")
        return "changed"

    world = World(tmp_path, script, Ext({"tool:before_call": hear}), settings={"mode": "auto"})
    write = world.session.parts.tools.find("write")
    assert write is not None
    world.tools(MadeTool("change", work), write).run("go")
    assert world.results()[0] == "changed"
    assert (tmp_path / "project/f/config").exists() == (not why)
    assert not why or world.results()[1].startswith("Not allowed by policy")
    assert not ahead or why in world.results()[1]


def test_handlers_hear_finished_calls_one_at_a_time(tmp_path: Path) -> None:
    inside: list[int] = []
    most: list[int] = []

    async def slow(_event: Event) -> None:
        inside.append(1)
        most.append(len(inside))
        await asyncio.sleep(0.01)
        inside.pop()

    world, _ = gated(tmp_path, THREE, Ext({"tool:completed": slow}), parallel=True)
    world.run("go")
    assert most == [1, 1, 1]


@pytest.mark.parametrize("parallel", [True, False])
def test_a_halt_while_deciding_lets_none_run(tmp_path: Path, parallel: bool) -> None:
    ext = Ext([
        ("tool:before_call", always(cancel("not a")), {"pattern": "a"}),
        ("tool:before_call", always(halt("not b")), {"pattern": "b"}),
    ])  # fmt: skip
    world, marks = gated(tmp_path, THREE, ext, parallel=parallel)
    result = world.run("go")
    assert (result.cause, result.reason, marks) == ("halted", "not b", [])
    assert world.results() == ["Blocked by ext: not a", "Blocked by ext: not b", "not run: halted by ext"]
    assert len(world.sent) == 1


def test_a_halt_before_a_later_call_leaves_what_ran_and_runs_no_more(tmp_path: Path) -> None:
    ext = Ext([("tool:before_call", always(halt("not b")), {"pattern": "b"})])
    world, marks = gated(tmp_path, THREE, ext, parallel=False)
    result = world.run("go")
    assert (result.cause, result.reason, marks) == ("halted", "not b", ["+a", "-a"])
    assert world.results() == ["did a", "Blocked by ext: not b", "not run: halted by ext"]
    assert len(world.of(ToolBatchCompleted)) == len(world.sent) == 1


def test_a_halt_while_running_lets_running_calls_finish_and_the_rest_not_start(tmp_path: Path) -> None:
    script = "call: a {}\ncall: b {}\ncall: s {}\n---\ntext: end\n"
    ext = Ext([("tool:completed", always(halt("that is enough")), {"pattern": "b"})])
    world, marks = gated(tmp_path, script, ext, parallel=True)
    found = [t for n in "ab" if (t := world.session.parts.tools.find(n)) is not None]
    world.tools(*found, named("s"))
    result = world.run("go")
    assert (result.cause, result.reason) == ("halted", "that is enough")
    assert marks == ["+a", "+b", "-b", "-a"]
    assert world.results() == ["did b", "did a", "not run: halted by ext"]


def test_a_call_that_ends_the_turn_does_not_keep_the_others_from_running_or_failing(tmp_path: Path) -> None:
    def fail(_args: dict[str, Any]) -> ToolResult:
        raise ValueError("no")

    world = World(tmp_path, THREE).tools(
        MadeTool("a", fail), MadeTool("b", lambda _a: ToolResult("over to you", ends_turn=True)), named("c")
    )
    result = world.run("go")
    assert (result.cause, result.response) == ("done", "over to you")
    assert world.results() == ["ValueError: no", "over to you", "did c"]
    assert len(world.sent) == 1


def test_a_failed_call_cannot_end_the_turn(tmp_path: Path) -> None:
    world = World(tmp_path, THREE).tools(
        MadeTool("a", lambda _a: ToolResult("no", is_error=True, ends_turn=True)), named("b"), named("c")
    )
    assert world.run("go").response == "end"


def test_call_ids_that_are_used_again_in_a_later_reply_are_paired_rightly(tmp_path: Path) -> None:
    """`by: order` with a loop gives the same ids in every conversation."""
    script = "by: order\nloop: yes\ncall: a {}\n---\ntext: end\n"
    counts = iter(range(9))
    for _ in range(2):  # a new process counts from the start: the same ids again
        world = World(tmp_path, script).tools(MadeTool("a", lambda _args: f"result {next(counts)}"))
        world.run("go")
    ids = [e.tool_call_id for e in world.log("tool_call")]
    assert ids[0] == ids[1]
    assert [text for role, text in world.said() if role == "tool"] == ["result 0", "result 1"]


def test_every_call_has_a_result_and_an_event(tmp_path: Path) -> None:
    world = World(tmp_path, "call: a {}\ncall: nothing {}\ncall: b {}\n---\ntext: end\n").tools(named("a"), named("b"))
    world.run("go")
    assert [c.name for c in world.of(ToolCompleted)] == ["a", "b"]
    assert [f.name for f in world.of(ToolFailed)] == ["nothing"]
    assert {e.tool_call_id for e in world.log("tool_call")} == {e.tool_call_id for e in world.log("tool_result")}


@pytest.mark.parametrize(("empty", "cause"), [(2, "done"), (3, "error")])
def test_an_empty_reply_is_asked_for_again_twice(tmp_path: Path, empty: int, cause: str) -> None:
    script = f"by: order\nthink: hm\nrepeat: {empty}\n---\ntext: at last\n"
    world = World(tmp_path, script)
    result = world.run("go")
    assert result.cause == cause
    assert len(world.sent) == 3
    assert world.sent[0] == world.sent[1] == world.sent[2]
    assert ("empty reply" in result.error) is (cause == "error")


def test_a_retry_after_an_empty_reply_does_not_add_context_twice(tmp_path: Path) -> None:
    ext = Ext({
        "message:received": always(Answer(context=("first",))),
        "message:before_send": always(Answer(context=("second",))),
    })  # fmt: skip
    world = World(tmp_path, "by: order\ntext:  \n---\ntext: at last\n", ext)
    world.run("go")
    assert world.said() == [("user", "go\n\nfirst\n\nsecond")]
