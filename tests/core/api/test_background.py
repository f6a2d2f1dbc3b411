"""`cru.background`: sub-agents of scripts, in both languages, as printed where plugins come from."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.core.agents.support import script
from tests.kit import HomeDir, cru, home

LUA = """
cru.on("session:started", function()
  crucible.background.spawn({
    agent = "explore",
    prompt = "Find all usages of AuthService",
    on_complete = function(result)
      cru.toast(result.status .. ": " .. tostring(result.output) .. tostring(result.error))
      cru.fs.write("ended", #cru.background.list() .. " " .. cru.background.get(result.id).status)
    end,
  })
end)
"""
PYTHON = """
from cru import background, fs, on, toast

async def ended(result):
    toast(f"{result['status']}: {result['output']}{result['error']}")
    fs.write("ended", f"{len(background.list())} {background.get(result['id'])['status']}")

async def start(ctx, event):
    await background.spawn({"agent": "explore", "prompt": "Find all usages of AuthService", "on_complete": ended})

on("session:started", start)
"""


@pytest.fixture
def here(tmp_path: Path) -> HomeDir:
    made = home(tmp_path)
    (made.cru / "plugins").mkdir(parents=True)
    return made


@pytest.mark.parametrize(("name", "source"), [("a.lua", LUA), ("a.py", PYTHON)])
def test_a_plugin_hears_how_its_agent_ended_and_the_model_does_not(
    here: HomeDir, tmp_path: Path, name: str, source: str
) -> None:
    (here.cru / "plugins" / name).write_text(source)
    model = script(tmp_path, "main", "by: order\nloop: yes\ntext: in auth.py\n---\ntext: done\n")
    here.configure(f'model = "{model}"\n')
    run = cru("hello", home=here)
    assert run.code == 0
    assert (here.project / "ended").read_text() == "1 completed"
    assert "completed: " in run.err
    assert [entry["content"] for entry in here.log() if entry.get("role") == "user"] == ["hello"]


@pytest.mark.parametrize(
    ("config", "options", "told"),
    [
        ("", '{agent="nobody", prompt="x"}', "there is no agent 'nobody'"),
        ('[permissions]\ndeny = ["task:explore"]\n', '{agent="explore", prompt="x"}', "the rule `task:explore`"),
        ("", '{agent="explore", prompt=""}', "error"),
        ("", '{agent="nobody", prompt="x", on_completed=print}', "there is no agent"),
    ],
)
def test_what_cannot_be_started_is_told(here: HomeDir, config: str, options: str, told: str) -> None:
    here.configure(config)
    source = f"""local ok, id, why = pcall(cru.background.spawn, {options})
      return ok and tostring(id) .. ' ' .. tostring(why) or 'error'"""
    run = cru("lua", source, home=here)
    assert told in run.out, run


def test_the_agent_that_is_started_is_the_one_that_guards_have_left(here: HomeDir, tmp_path: Path) -> None:
    (here.cru / "plugins" / "guard.lua").write_text(
        'cru.on("tool:before_call", function() return { args = { agent = "explore", prompt = "look" } } end)\n'
    )
    (here.cru / "plugins" / "spawner.lua").write_text(
        'cru.on("session:started", function() cru.background.spawn({ agent = "general", prompt = "look" }) end)\n'
    )
    model = script(tmp_path, "main", "by: order\nloop: yes\ntext: done\n")
    here.configure(f'model = "{model}"\n')
    assert cru("hello", home=here).code == 0
    (task,) = (here.context() / "tasks").glob("*/task.json")
    assert '"agent":"explore"' in task.read_text()
