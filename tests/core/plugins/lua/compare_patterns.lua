-- Compares two sets of pattern functions. Takes: the source of patterns.lua. Returns a function (cases) -> how many calls were compared,
-- and what the first calls that differ gave. A case is { subject, pattern, replacement, init }.

local source = ...
local real = {}
for _, name in ipairs({ "find", "match", "gmatch", "gsub" }) do real[name] = string[name] end

local function loaded(text)                -- the functions of patterns.lua, over the real ones
  local own = setmetatable({ string = setmetatable({}, { __index = string }) }, { __index = _G })
  assert(load(text, "=[cru patterns]", "t", own))(function() end)
  return own.string
end
local slow, count = source:gsub("STEPS, LINEAR = 5e7, 1e8", "STEPS, LINEAR = -1, -1", 1)
assert(count == 1)
local ours = { chosen = loaded(source), slow = loaded(slow) }

local function described(...)
  local values = table.pack(...)
  for n = 1, values.n do values[n] = (math.type(values[n]) or type(values[n])) .. " " .. tostring(values[n]) end
  return table.concat(values, ", ")
end

-- What C itself reports has our place; what the matcher in Lua reports has the caller's.
local function without_our_place(text) return (text:gsub("%[cru patterns%]:%d+: ", "")) end
local function without_place(text) return (text:gsub("%[string [^\n]-%]:%d+: ", "")) end

local TABLE = { a = "A", ab = false, b = 7, [1] = "one", [2] = true }
local CALLS = {
  find = function(lib, s, p, _, init) return described(lib.find(s, p, init)) end,
  match = function(lib, s, p, _, init) return described(lib.match(s, p, init)) end,
  gsub = function(lib, s, p, repl) return described(lib.gsub(s, p, repl)) end,
  ["gsub twice"] = function(lib, s, p) return described(lib.gsub(s, p, string.upper, 2)) end,
  ["gsub table"] = function(lib, s, p) return described(lib.gsub(s, p, TABLE)) end,
  gmatch = function(lib, s, p, _, init)
    local matches = {}
    for first, second in lib.gmatch(s, p, init) do matches[#matches + 1] = described(first, second) end
    return table.concat(matches, "; ")
  end,
}

return function(cases)
  local calls, different = 0, {}
  for _, case in ipairs(cases) do
    local s, p, repl, init = case[1], case[2], case[3], case[4]
    for name, call in pairs(CALLS) do
      local expected = described(pcall(call, real, s, p, repl, init))
      for kind, lib in pairs(ours) do
        calls = calls + 1
        local got = described(pcall(call, lib, s, p, repl, init))
        local same = got == expected or (kind == "chosen" or got:find("bad argument")) and without_our_place(got) == without_place(expected)
        if not same and #different < 5 then
          different[#different + 1] = ("%s %s(%q, %q, %q, %s): %s, not %s"):format(kind, name, s, p, repl, tostring(init), got, expected)
        end
      end
    end
  end
  return calls, table.concat(different, "\n")
end
