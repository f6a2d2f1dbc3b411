"""`cru plugin new`: a plugin that works at once, to begin with."""

from __future__ import annotations

import re
from pathlib import Path

from cru.core.base.files.atomic import write_private
from cru.core.base.files.regular import make_private_folder
from cru.core.base.values.errors import CruError
from cru.faces.cli.console import show
from cru.faces.cli.flags import UsageProblem

NAME = re.compile(r"[a-z][a-z0-9_-]*")

LUA = """\
-- NAME: a plugin of cru, loaded when a session begins. `cru plugin test NAME` runs its tests, `cru plugin list` shows
-- whether it is active. What `[plugins.NAME]` in config.toml says is read by cru.config.get("NAME.key").

local M = {}

-- A handler hears an event. It may answer with a table: cancel or change what is about to happen, inject a prompt, add
-- context; nil lets everything go on. docs/events.md lists the events with their fields and answers.
-- @handler event="tool:completed" pattern="*" priority=100
function M.on_tool_completed(ctx, event)
  M.seen = (M.seen or 0) + 1
  cru.log("info", cru.fmt("NAME: {name} is tool call number {seen}", { name = event.name, seen = M.seen }))
  return nil
end

-- A tool is offered to the model. It gets one table of arguments; a text or a table is its result, and a table with
-- `error` a failure that the model can read.
--- Counts the words of a text.
-- @tool name="IDENT_count"
-- @param text string The text to count
function M.count(args)
  local count = 0
  for _ in args.text:gmatch("%S+") do count = count + 1 end
  return { words = count }
end

return M
"""
LUA_TEST = """\
-- The plugin is required by the name of its folder. test_mocks replaces http, fs and the like by stand-ins.
describe("NAME", function()
  local plugin = require("NAME")

  before_each(function()
    test_mocks.setup()
    plugin.seen = nil
  end)

  it("counts words", function()
    assert.equal(3, plugin.count({ text = "one two  three" }).words)
    assert.equal(0, plugin.count({ text = "" }).words)
  end)

  it("hears tools, and lets everything go on", function()
    assert.is_nil(plugin.on_tool_completed({}, { name = "shell" }))
    assert.equal(1, plugin.seen)
  end)
end)
"""
HEALTH = """\
-- What `cru plugin health NAME` prints.
return {
  check = function()
    cru.health.start("NAME")
    if cru.shell.which("git") then
      cru.health.ok("git is there")
    else
      cru.health.warn("git is missing", "install git")
    end
  end,
}
"""
PYTHON = '''\
"""NAME: a plugin of cru, loaded when a session begins. `cru plugin test NAME` runs its tests, `cru plugin list` shows whether
it is active.

`setup(cru)` is called once a session; what `[plugins.NAME]` in config.toml says is read by `cru.config.get("NAME.key")`.
"""

seen: list[str] = []


def setup(cru):
    """Register handlers. Each hears an event, and may answer with a dict: cancel or change what is about to happen, inject a
    prompt, add context; None lets everything go on. docs/events.md lists the events with their fields and answers."""
    cru.on("tool:completed", on_tool_completed, {"priority": 100})


def on_tool_completed(ctx, event):
    seen.append(event["name"])


def health(cru):
    """What `cru plugin health NAME` prints."""
    cru.health.ok(f"{len(seen)} tool calls were seen")
'''
PYTHON_TEST = '''\
"""`cru plugin test NAME` runs it, and so does `pytest`."""

import importlib.util
from pathlib import Path


def plugin():
    spec = importlib.util.spec_from_file_location("plugin", Path(__file__).parent.parent / "__init__.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tool_calls_are_seen_and_go_on():
    under_test = plugin()
    assert under_test.on_tool_completed(None, {"name": "shell"}) is None
    assert under_test.seen == ["shell"]
'''
BASH_PROGRAM = """\
#!/usr/bin/env bash
# NAME: a plugin of cru that is a program. It is run with --schema once, then for each call of its tool and each hook that it
# registered. `cru plugin list` shows whether it is active; docs/executables.md lists the hooks with their answers.

if [[ ${1:-} == --schema ]]; then
  cat <<'END'
{"name": "IDENT_count", "description": "Counts the words of a text.",
 "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
 "hooks": ["pre_shell_exec"]}
END
  exit
fi

given=$(cat) # the arguments of the tool, or what the hook is about: JSON

case "${CHIBI_HOOK:-}" in
"") # a call of the tool; what is printed is its result
  jq -r '.text' <<<"$given" | wc -w
  ;;
pre_shell_exec) # before a command runs; nothing printed lets it
  if jq -e '.command | test("git push.* --force")' <<<"$given" >/dev/null; then
    echo '{"denied": true, "reason": "nobody forces a push here"}'
  fi
  ;;
esac
"""
PYTHON_PROGRAM = '''\
#!/usr/bin/env python3
"""NAME: a plugin of cru that is a program. It is run with --schema once, then for each call of its tool and each hook that it
registered. `cru plugin list` shows whether it is active; docs/executables.md lists the hooks with their answers."""

import json
import os
import re
import sys

SCHEMA = {
    "name": "IDENT_count",
    "description": "Counts the words of a text.",
    "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    "hooks": ["pre_shell_exec"],
}


def count(arguments):
    """A call of the tool; what is printed is its result."""
    return str(len(arguments["text"].split()))


def pre_shell_exec(payload):
    """Before a command runs; nothing printed lets it."""
    if re.search(r"git push.* --force", payload["command"]):
        return {"denied": True, "reason": "nobody forces a push here"}


def main():
    if sys.argv[1:] == ["--schema"]:
        print(json.dumps(SCHEMA))
        return
    given = json.load(sys.stdin)  # the arguments of the tool, or what the hook is about
    hook = os.environ.get("CHIBI_HOOK")
    if hook is None:
        print(count(given))
    elif hook == "pre_shell_exec" and (answer := pre_shell_exec(given)):
        print(json.dumps(answer))


main()
'''
FILES: dict[str, dict[str, str]] = {
    "lua": {"NAME/init.lua": LUA, "NAME/tests/NAME_test.lua": LUA_TEST, "NAME/health.lua": HEALTH},
    "python": {"NAME/__init__.py": PYTHON, "NAME/tests/test_IDENT.py": PYTHON_TEST},
    "bash program": {"NAME": BASH_PROGRAM},
    "python program": {"NAME": PYTHON_PROGRAM},
}
"""Of each language, what is written: NAME is the plugin's name, IDENT the same as an identifier."""
PROGRAM = " program"
NEXT = "cru plugin test NAME"
CALL = """cru -P IDENT_count '{"text": "one two"}'"""


class PluginExists(CruError):
    """Nothing is overwritten."""


def create_plugin(home: Path, name: str, kind: str) -> int:
    """Write the files, and say what to do next. `kind` is a language, or one and ` program`. Raises UsageProblem for a bad name or kind,
    PluginExists and OSError."""
    if kind not in FILES:
        known = [language.removesuffix(PROGRAM) for language in FILES if language.endswith(PROGRAM)]
        raise UsageProblem(
            f"there is no program in {kind.removesuffix(PROGRAM)} to begin with",
            f"cru plugin new {name} --executable {known[0]} (or {', '.join(known[1:])}); then write it in any language",
        )
    if not NAME.fullmatch(name):
        raise UsageProblem(f"{name!r} is no name for a plugin", "a small letter, then small letters, digits, - and _")
    plugins = home / "plugins"
    for taken in (plugins / name, plugins / f"{name}.lua", plugins / f"{name}.py"):
        if taken.exists() or taken.is_symlink():
            raise PluginExists(f"{taken} is there already", "choose another name, or move it away")
    is_program = kind.endswith(PROGRAM)
    for path, text in FILES[kind].items():
        file = plugins / _named(path, name)
        make_private_folder(file.parent)
        write_private(file, _named(text, name).encode(), 0o700 if is_program else 0o600)
        show(str(file))
    show(f"try it: {_named(CALL if is_program else NEXT, name)}")
    return 0


def _named(text: str, name: str) -> str:
    return text.replace("NAME", name).replace("IDENT", name.replace("-", "_"))
