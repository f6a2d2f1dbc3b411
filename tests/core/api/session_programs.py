"""Plugins in both languages that work with `cru.sessions`, and what they gave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.core.agents.support import configure_scripts, script
from tests.kit import Done, HomeDir, cru, home

CHILD = """think: hm
text: I look
call: ls {}
---
text: first
---
text: second
---
text: third
"""
LUA = """
local sessions = cru.sessions
local function collect(id, text, opts)
  local parts, why = {}, nil
  local next_part, refused = sessions.send_and_collect(id, text, opts)
  if not next_part then return refused end
  for part in next_part do
    parts[#parts + 1] = part.type .. ": " .. tostring(part.content or part.tool) .. (part.is_error and "!" or "")
  end
  return table.concat(parts, ", ")
end
local function main(ctx)
  %s
end
cru.on("%s", function(ctx, event)
  local ok, result = pcall(main, ctx)
  cru.fs.write("result.json", cru.json.encode({ok = ok, result = ok and result or tostring(result)}))
end)
"""
PYTHON = """
import json
from cru import fs, on, sessions, toast

async def collect(id, text, opts=None):
    parts, why = await sessions.send_and_collect(id, text, opts)
    if parts is None:
        return why
    return ", ".join([
        f"{part['type']}: {part.get('content') or part.get('tool')}{'!' if part.get('is_error') else ''}" async for part in parts
    ])

async def main(ctx):
%s

async def start(ctx, event):
    try:
        result = {"ok": True, "result": await main(ctx)}
    except Exception as error:
        result = {"ok": False, "result": str(error)}
    fs.write("result.json", json.dumps(result))

on("%s", start)
"""


def configure(here: HomeDir, tmp_path: Path, config: str = "", main: str = "loop: yes\ntext: done\n") -> None:
    script(tmp_path, "child", CHILD)
    configure_scripts(here, tmp_path, script(tmp_path, "main", main), config)


def child(here: HomeDir) -> str:
    return f"scripted:{here.path.parent}/child.txt"


def result(
    here: HomeDir,
    language: str,
    lua: str,
    python: str,
    *,
    event: str = "session:started",
    words: tuple[str, ...] = ("go",),
) -> Any:
    """What the plugin's function gives, with MODEL in it for the model of its sessions."""
    source = LUA % (lua.strip(), event) if language == "lua" else PYTHON % (_indented(python), event)
    (here.cru / "plugins" / f"scout.{language}").write_text(source.replace("MODEL", child(here)))
    run = cru(*words, home=here)
    assert run.code == 0, run
    here.last = run  # type: ignore[attr-defined]
    answer = json.loads((here.project / "result.json").read_text())
    assert answer["ok"], answer
    return answer["result"]


def last(here: HomeDir) -> Done:
    return here.last  # type: ignore[attr-defined, no-any-return]


def _indented(source: str) -> str:
    return "\n".join("    " + line for line in source.strip("\n").splitlines())


def plugin_home(tmp_path: Path) -> HomeDir:
    """A home for plugins, whose model says `done`."""
    made = home(tmp_path)
    (made.cru / "plugins").mkdir(parents=True)
    configure(made, tmp_path)
    return made
