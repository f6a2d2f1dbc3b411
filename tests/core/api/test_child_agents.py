"""What a plugin does in a call or an event of a sub-agent it does with that agent's tools, mode, depth and place."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.core.agents.support import call, script
from tests.kit import Done, HomeDir, cru, home

LUA = """
--- Do something by other means.
-- @tool name="deleg"
-- @param what string what
function deleg(args)
  if args.what == "write" then
    local done, why = cru.tools.call("write", {file_path="made.txt", content="x"})
    return tostring(done) .. " " .. tostring(why)
  elseif args.what == "fs" then
    cru.fs.write("made.txt", "x")
    return cru.paths.workspace() .. " " .. cru.shell.exec("pwd").stdout
  elseif args.what == "names" then
    local names = {}
    for _, tool in ipairs((cru.tools.list())) do names[#names + 1] = tool.name end
    return table.concat(names, " ")
  elseif args.what == "session" then
    local session, error = cru.sessions.create({agent_card="general", model="BELOW"})
    if not session then return error end
    local id, why = cru.sessions.send_message(session.id, "go")
    return tostring(id) .. " " .. tostring(why)
  end
  local id, why = cru.background.spawn({agent="general", prompt="go", model="BELOW"})
  return tostring(id) .. " " .. tostring(why)
end
"""
PYTHON = """
from cru import background
from cru import tools

async def deleg(args):
    if args["what"] == "write":
        return str(await tools.call("write", {"file_path": "made.txt", "content": "x"}))
    return str(await background.spawn({"agent": "general", "prompt": "go", "model": "BELOW"}))

TOOLS = {"deleg": {"desc": "Do it by other means.", "fn": deleg, "params": [{"name": "what", "type": "string"}]}}
"""


@pytest.fixture
def here(tmp_path: Path) -> HomeDir:
    made = home(tmp_path)
    for folder in ("plugins", "agents"):
        (made.cru / folder).mkdir(parents=True)
    return made


def bring(here: HomeDir, name: str, source: str, below: str = "scripted:none") -> None:
    (here.cru / "plugins" / name).write_text(source.replace("BELOW", below))


def card(here: HomeDir, name: str, *lines: str) -> None:
    (here.cru / "agents" / f"{name}.md").write_text("\n".join(("---", f"description: {name}", *lines, "---", "x\n")))


def deleg(what: str) -> str:
    return f'call: deleg {{"what": "{what}"}}\n---\ntext: done\n'


def run(here: HomeDir, tmp_path: Path, agent: str, model: str, *flags: str, **more: object) -> Done:
    main = script(tmp_path, "main", f"{call(agent, model, **more)}\n---\ntext: all\n---\ntext: all\n")
    here.configure(f'model = "{main}"\nhooks.dialects = ["claude"]\n')
    done = cru("--trust", "hello", *flags, home=here)
    assert done.code == 0, done
    return done


def results(here: HomeDir) -> list[str]:
    """What the first sub-agent's calls gave."""
    found = []
    for log in (here.context() / "tasks").glob("*/context.jsonl"):
        entries = [json.loads(line) for line in log.read_text().splitlines()]
        found += [entry["content"] for entry in entries if entry.get("entry_type") == "tool_result"]
    return found


def tasks(here: HomeDir) -> list[dict[str, object]]:
    files = (here.context() / "tasks").glob("*/task.json")
    return sorted((json.loads(file.read_text()) for file in files), key=lambda task: task.get("created", 0))


@pytest.mark.parametrize(("name", "source"), [("d.lua", LUA), ("d.py", PYTHON)])
@pytest.mark.parametrize("what", ["write", "spawn"])
def test_a_narrowed_agent_cannot_do_through_a_plugin_what_it_may_not(
    here: HomeDir, tmp_path: Path, name: str, source: str, what: str
) -> None:
    bring(here, name, source)
    card(here, "narrow", "tools: read, deleg")
    run(here, tmp_path, "narrow", script(tmp_path, "child", deleg(what)))
    assert not (here.project / "made.txt").exists()
    (told,) = results(here)
    assert ("write" if what == "write" else "task") in told, told
    assert len(tasks(here)) == 1


def test_it_sees_the_tools_that_the_agent_has(here: HomeDir, tmp_path: Path) -> None:
    bring(here, "d.lua", LUA)
    card(here, "narrow", "tools: read, deleg")
    run(here, tmp_path, "narrow", script(tmp_path, "child", deleg("names")))
    assert sorted(results(here)[0].split()) == ["deleg", "read"]


@pytest.mark.parametrize(("name", "source"), [("d.lua", LUA), ("d.py", PYTHON)])
def test_what_it_spawns_is_below_the_agent(here: HomeDir, tmp_path: Path, name: str, source: str) -> None:
    bring(here, name, source, script(tmp_path, "below", deleg("spawn")))
    run(here, tmp_path, "general", script(tmp_path, "child", deleg("spawn")), "-s", "tasks.max_depth=2")
    found = tasks(here)
    assert [(task["depth"], task["parent"]) for task in found] == [(1, "main"), (2, found[0]["id"])]


def test_a_conversation_of_it_is_below_the_agent(here: HomeDir, tmp_path: Path) -> None:
    bring(here, "d.lua", LUA, script(tmp_path, "below", "text: below\n"))
    run(here, tmp_path, "general", script(tmp_path, "child", deleg("session")))
    found = tasks(here)
    assert [(task["depth"], task["parent"]) for task in found] == [(1, "main"), (2, found[0]["id"])]


def test_a_narrowed_agent_starts_no_conversation(here: HomeDir, tmp_path: Path) -> None:
    bring(here, "d.lua", LUA, script(tmp_path, "below", "text: below\n"))
    card(here, "narrow", "tools: read, deleg")
    run(here, tmp_path, "narrow", script(tmp_path, "child", deleg("session")))
    assert len(tasks(here)) == 1


@pytest.mark.sample(1)
@pytest.mark.parametrize("what", ["write", "fs"])
def test_an_agent_in_a_worktree_writes_there(here: HomeDir, tmp_path: Path, what: str) -> None:
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(here.project))
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    bring(here, "d.lua", LUA)
    run(here, tmp_path, "general", script(tmp_path, "child", deleg(what)), isolation="worktree")
    assert not (here.project / "made.txt").exists()
    assert str(here.project) + "\n" not in results(here)[0]
    assert "made.txt" in next((here.cru / "contexts").rglob("*.patch")).read_text()


def test_a_handler_of_its_events_and_what_that_leaves_running_are_bound_like_it(here: HomeDir, tmp_path: Path) -> None:
    source = """
    local function try(name) return function(ctx, event)
      if not ctx.is_sub_agent then return end
      local done, why = cru.tools.call("write", {file_path = name, content = "x"})
      cru.log("warn", name .. ": " .. tostring(why))
    end end
    cru.on("tool:before_call", try("before"), {pattern = "read"})
    cru.on("tool:completed", function(ctx, event) cru.spawn(function() try("later")(ctx, event) end) end, {pattern = "read"})
    """
    bring(here, "h.lua", source)
    (here.project / "README.md").write_text("hello")
    card(here, "narrow", "tools: read")
    child = script(tmp_path, "child", 'call: read {"file_path": "README.md"}\n---\ntext: done\n')
    shown = run(here, tmp_path, "narrow", child)
    assert not [name for name in ("before", "later") if (here.project / name).exists()]
    assert "before: " in shown.err and "later: " in shown.err


def test_nothing_begins_for_an_agent_that_has_ended(here: HomeDir, tmp_path: Path) -> None:
    source = """
    local ended, told = false, false
    cru.on("tool:before_call", function(ctx)
      if not ctx.is_sub_agent then return end
      cru.spawn(function()
        while not ended do cru.timer.sleep(0.02) end
        local id, why = cru.background.spawn({agent="general", prompt="go", model="scripted:none"})
        cru.log("warn", tostring(id) .. " " .. tostring(why))
        told = true
      end)
    end)
    cru.on("task:completed", function() ended = true end)
    cru.on("turn:complete", function(ctx)
      if ctx.is_sub_agent then return end
      for _ = 1, 200 do if told then return end; cru.timer.sleep(0.02) end
    end)
    """
    bring(here, "h.lua", source)
    shown = run(here, tmp_path, "general", script(tmp_path, "child", "call: ls {}\n---\ntext: done\n"))
    assert "nil the agent that asks for it has ended" in shown.err
    assert len(tasks(here)) == 1


def test_what_the_plugin_does_by_itself_goes_on_with_the_main_agent(here: HomeDir, tmp_path: Path) -> None:
    source = """
    local wanted, written = false, false
    cru.on("tool:before_call", function(ctx) wanted = ctx.is_sub_agent end, {pattern = "read"})
    cru.on("tool:completed", function(ctx)
      if not ctx.is_sub_agent then return end
      for _ = 1, 200 do if written then return end; cru.timer.sleep(0.02) end
    end, {pattern = "read"})
    cru.schedule({every = 0.02}, function()
      if wanted and not written then
        written = true
        cru.tools.call("write", {file_path = "own", content = "x"})
      end
    end)
    """
    bring(here, "h.lua", source)
    (here.project / "README.md").write_text("hello")
    card(here, "narrow", "tools: read")
    child = script(tmp_path, "child", 'call: read {"file_path": "README.md"}\n---\ntext: done\n')
    run(here, tmp_path, "narrow", child)
    assert (here.project / "own").exists()


NO_TOOLS = {
    "background.lua": """cru.on("session:started", function()
      cru.background.spawn({agent="general", prompt="go", model="BELOW", tools={}})
    end)""",
    "background.py": """
from cru import background, on

async def start(ctx, event):
    await background.spawn({"agent": "general", "prompt": "go", "model": "BELOW", "tools": []})

on("session:started", start)
""",
    "sessions.lua": """cru.on("session:started", function()
      local session = cru.sessions.create({agent_card="general", model="BELOW", tools={}})
      cru.sessions.send_message(session.id, "go")
    end)""",
    "configured.lua": """cru.on("session:started", function()
      local session = cru.sessions.create({agent_card="general", model="BELOW", tools={"*"}})
      cru.sessions.configure_agent(session.id, {tools={}})
      cru.sessions.send_message(cru.sessions.fork(session.id).id, "go")
    end)""",
}
WRITES = 'call: write {"file_path": "made.txt", "content": "x"}\n---\ntext: done\n'


@pytest.mark.parametrize("name", NO_TOOLS)
def test_an_empty_list_of_tools_means_none(here: HomeDir, tmp_path: Path, name: str) -> None:
    bring(here, name, NO_TOOLS[name], script(tmp_path, "below", WRITES))
    main = script(tmp_path, "main", "by: order\nloop: yes\ntext: all\n")
    here.configure(f'model = "{main}"\n')
    shown = cru("--trust", "hello", home=here)
    assert results(here) == ["there is no tool `write`"], shown
    assert not (here.project / "made.txt").exists()


HOOK = """cat > /dev/null
echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": INPUT}}'
"""


@pytest.mark.parametrize("by", ["model", "hook", "handler"])
def test_an_empty_list_in_a_call_of_task_means_none(here: HomeDir, tmp_path: Path, by: str) -> None:
    child = script(tmp_path, "child", WRITES)
    more: dict[str, object] = {}
    if by == "model":
        more = {"tools": []}
    elif by == "hook":
        command = tmp_path / "hook.sh"
        given = {"subagent_type": "general", "prompt": "go", "description": "", "model": child, "tools": []}
        command.write_text(HOOK.replace("INPUT", json.dumps(given)))
        hook = {"matcher": "Task", "hooks": [{"type": "command", "command": f"sh {command}"}]}
        folder = here.path / ".claude"
        folder.mkdir()
        (folder / "settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [hook]}}))
    else:
        bring(here, "h.lua", 'cru.on("task:spawned", function() return { tools = cru.json.array({}) } end)')
        more = {"tools": ["read", "write"]}
    shown = run(here, tmp_path, "general", child, **more)
    assert results(here) == ["there is no tool `write`"], shown
    assert not (here.project / "made.txt").exists()


def test_handlers_hear_no_list_where_the_card_decides(here: HomeDir, tmp_path: Path) -> None:
    bring(
        here,
        "h.lua",
        'cru.on("task:spawned", function(ctx, event) cru.log("warn", "heard " .. tostring(event.tools)) end)',
    )
    shown = run(here, tmp_path, "general", script(tmp_path, "child", "text: done\n"))
    assert "heard nil" in shown.err
