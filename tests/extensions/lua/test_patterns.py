"""The matcher in Lua gives what C's matcher gives."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.extensions.lua.support import run

import cru.extensions.lua
from cru.extensions.lua.runtime import LuaVM

VM = LuaVM()
SOURCE = (Path(cru.extensions.lua.__path__[0]) / "patterns.lua").read_text(encoding="utf-8")
COMPARE = VM.load(
    """local source, s, p, repl, init = ...
    mine = mine or (function()
      local copy = setmetatable({ string = setmetatable({}, { __index = real }) }, { __index = _G })
      assert(load(source:gsub("STEPS, LINEAR = 5e7, 1e8", "STEPS, LINEAR = -1, -1", 1), "=mine", "t", copy))(function() end)
      return copy.string
    end)()
    local function all(lib)
      local got = { table.pack(pcall(lib.find, s, p, init)),
                    table.pack(pcall(lib.match, s, p, init)), table.pack(pcall(lib.gsub, s, p, repl)),
                    table.pack(pcall(lib.gsub, s, p, string.upper, 2)) }
      local found = {}
      local ok = pcall(function() for a, b in lib.gmatch(s, p) do found[#found + 1] = { a, b } end end)
      got[5] = ok and found or "error"
      for n = 1, 4 do if not got[n][1] then got[n] = "error" end end
      return got
    end
    return all(real), all(mine)""",
    "@compare.lua",
    VM.environment(),
)
run(
    VM,
    "_G.real = { find = string.find, match = string.match, gmatch = string.gmatch, gsub = string.gsub, byte = string.byte, "
    "sub = string.sub, char = string.char }",
)

PIECES = st.sampled_from(
    [
        "a",
        "b",
        ".",
        "%a",
        "%d",
        "[ab]",
        "[^a]",
        "[a-c]",
        "%s",
        "(",
        ")",
        "()",
        "a*",
        "b+",
        ".-",
        "a?",
        "[ab]-",
        "%b()",
        "%f[%w]",
        "%1",
        "$",
        "^",
        "%%",
    ]
)


@given(
    st.text("ab1 ()", max_size=12),
    st.lists(PIECES, max_size=6).map("".join),
    st.sampled_from(["", "x", "<%0>", "%1", "%%"]),
    st.integers(-3, 5),
)
@settings(max_examples=400, deadline=None)
def test_both_matchers_agree(subject: str, pattern: str, repl: str, init: int) -> None:
    outcome = VM.start(COMPARE, SOURCE, subject, pattern, repl, init)
    assert isinstance(outcome, tuple)
    assert outcome[0] == outcome[1]


def test_long_subjects_give_the_same_as_short_ones() -> None:
    source = """local text = ("  key = some value  \\n"):rep(5000)
    local lines = 0
    for line in text:gmatch("(.-)\\n") do
      local k, v = line:match("^%s*(%w+)%s*=%s*(.-)%s*$")
      if k == "key" and v == "some value" then lines = lines + 1 end
    end
    return lines, #(text:gsub("%s+$", "")), select(2, text:gsub("%s*\\n", "\\n"))"""
    assert run(LuaVM(run_seconds=30), source) == (5000, 5000 * 21 - 3, 5000)
