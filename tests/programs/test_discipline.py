"""Two programs that keep an agent at its work, in two variants each, byte for byte as their authors printed them.

todo_enforcer: an answer with an open checkbox makes the agent go on, once. ralph_loop: goes on until a tag is said, or a limit is reached;
started through `require("ralph_loop").start(…)`. with_state uses cru.state and table injects, with_cjson files, cjson and string injects.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest
from tests.kit import Done, HomeDir, Received, Reply, cru, home, server

PROGRAMS = Path(__file__).with_name("discipline")
VARIANTS = ("with_state", "with_cjson")
# The programs are never edited.
DIGESTS = {
    "with_cjson/ralph_loop.lua": "d73b8416a11d138f51b79bb1a8d4434b585957cd85d169de528de0af37bb075a",
    "with_cjson/todo_enforcer.lua": "910ee076e1844b42a80930e2ebf7114862a502d7131862c4b99f6181091fba2d",
    "with_state/ralph_loop.lua": "5d49ea71c423626abb85ac306bc1a6565bdb2f471d3aa8d0f8ddd12abb41d59b",
    "with_state/todo_enforcer.lua": "ac9204dec69bd98520a48e9ff1c7d63b09f1e23cc74c39599eff319f0d8d499b",
}
STARTER = """
cru.once("session:started", function()
  require("ralph_loop").start("Port the parser", { max_iterations = %d, completion_tag = "FINISHED" })
end)
"""


def install(here: HomeDir, variant: str, *names: str, limit: int = 0) -> None:
    plugins = here.cru / "plugins"
    plugins.mkdir(parents=True)
    for name in names:
        shutil.copy(PROGRAMS / variant / f"{name}.lua", plugins)
    if limit:
        (plugins / "starter.lua").write_text(STARTER % limit)


def run(
    tmp_path: Path, variant: str, answers: list[str], *names: str, limit: int = 0
) -> tuple[Done, HomeDir, list[Received]]:
    """One turn; the model gives these answers, the last one again and again."""
    asked = 0

    def rule(request: Received) -> Reply:
        nonlocal asked
        asked += 1
        return Reply(answers[min(asked, len(answers)) - 1])

    with server(rule) as model:
        here = home(tmp_path, url=model.url)
        install(here, variant, *names, limit=limit)
        done = cru("start", home=here)
    assert done.code == 0, done
    return done, here, model.requests


def continuations(here: HomeDir) -> list[str]:
    return [e["content"] for e in here.log() if e.get("metadata", {}).get("source") == "continuation"]


@pytest.mark.parametrize("name", DIGESTS)
def test_the_programs_are_as_they_were_printed(name: str) -> None:
    assert hashlib.sha256((PROGRAMS / name).read_bytes()).hexdigest() == DIGESTS[name]


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_open_checkbox_makes_the_agent_go_on_just_once(tmp_path: Path, variant: str) -> None:
    done, here, requests = run(tmp_path, variant, ["- [ ] write it", "- [ ] still open"], "todo_enforcer")
    assert done.out == "- [ ] write it\n- [ ] still open\n"
    assert len(requests) == 2
    [injected] = continuations(here)
    assert "You have incomplete tasks. Continue working." in injected
    assert requests[1].body["messages"][-1] == {"role": "user", "content": injected}


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_answer_without_one_ends_the_turn(tmp_path: Path, variant: str) -> None:
    done, here, requests = run(tmp_path, variant, ["- [x] done"], "todo_enforcer")
    assert (done.out, len(requests), continuations(here)) == ("- [x] done\n", 1, [])


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_loop_goes_on_until_the_tag_is_said(tmp_path: Path, variant: str) -> None:
    done, here, requests = run(tmp_path, variant, ["one", "two", "three FINISHED"], "ralph_loop", limit=100)
    assert len(requests) == 3
    said = continuations(here)
    assert ["1/100" in said[0], "2/100" in said[1]] == [True, True]
    assert "'FINISHED'" in said[0]
    assert "complete!" in done.err


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_loop_is_required_by_its_path_as_its_authors_print_it(tmp_path: Path, variant: str) -> None:
    with server([Reply("one"), Reply("two FINISHED")]) as model:
        here = home(tmp_path, url=model.url)
        folder = here.cru / "plugins" / "crucible-agents" / "workflows"
        folder.mkdir(parents=True)
        shutil.copy(PROGRAMS / variant / "ralph_loop.lua", folder)
        starter = (STARTER % 9).replace('"ralph_loop"', '"crucible-agents.workflows.ralph_loop"')
        (here.cru / "plugins" / "starter.lua").write_text(starter)
        done = cru("start", home=here)
    assert done.code == 0 and "complete!" in done.err and len(model.requests) == 2


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_loop_ends_at_its_limit(tmp_path: Path, variant: str) -> None:
    done, here, requests = run(tmp_path, variant, ["not yet"], "ralph_loop", limit=12)
    assert len(requests) == 12
    assert len(continuations(here)) == 11
    assert "ax iterations reached" in done.err


@pytest.mark.parametrize("variant", VARIANTS)
def test_both_together_the_one_that_runs_last_is_heard(tmp_path: Path, variant: str) -> None:
    _, here, requests = run(tmp_path, variant, ["- [ ] open", "FINISHED"], "ralph_loop", "todo_enforcer", limit=9)
    assert len(requests) == 2
    assert "You have incomplete tasks" in continuations(here)[0]
