-- Pattern functions that always end. One call of C's matcher cannot be interrupted and may take for ever, so a subject that is too
-- long for its pattern goes to a matcher in Lua with the same results: slower, but the time limit reaches it.
-- Takes: weigh (counts what long functions of C do, and looks at the clock).

local weigh = ...
local string = string
local find, match, gmatch, gsub = string.find, string.match, string.gmatch, string.gsub
local byte, sub, char, concat = string.byte, string.sub, string.char, table.concat
local type, error, tostring, mathtype = type, error, tostring, math.type

local STEPS, LINEAR = 5e7, 1e8             -- about 0.2 s of C's matcher
local LONGEST, KEPT = 16384, 200           -- bytes of a pattern, and of one that is worth keeping
local SPECIALS = "[%^%$%*%+%?%.%(%[%%%-]"  -- without one of these C's find takes the pattern as plain text
local cached, programs = {}, {}

-- A pattern as a list of items { op, set, quantifier, ... } -----------------------------------------------------------------------
local function class_end(p, i)
  local c = sub(p, i, i)
  if c == "%" then
    if i == #p then error("malformed pattern (ends with '%')", 0) end
    return i + 2
  elseif c ~= "[" then
    return i + 1
  end
  i = i + 1
  if sub(p, i, i) == "^" then i = i + 1 end
  repeat
    if i > #p then error("malformed pattern (missing ']')", 0) end
    i = i + (sub(p, i, i) == "%" and 2 or 1)
  until sub(p, i, i) == "]"
  return i + 1
end

local sets, set_count = {}, 0
local function set_of(class)               -- which bytes C's matcher takes for this class
  local set = sets[class]
  if not set then
    set = {}
    if set_count > 500 then sets, set_count = {}, 0 end
    for b = 0, 255 do set[b] = find(char(b), class) ~= nil end
    sets[class], set_count = set, set_count + 1
  end
  return set
end

local function special(p, i, items)        -- captures, %b, %f, %1 and the last $; returns the position after it
  local c, two = sub(p, i, i), sub(p, i, i + 1)
  if two == "()" then
    items[#items + 1] = { op = "position" }
    return i + 2
  elseif c == "(" or c == ")" then
    items[#items + 1] = { op = c == "(" and "open" or "close" }
    return i + 1
  elseif c == "$" and i == #p then
    items[#items + 1] = { op = "end" }
    return i + 1
  elseif two == "%b" then
    if i + 3 > #p then error("malformed pattern (missing arguments to '%b')", 0) end
    items[#items + 1] = { op = "balance", first = byte(p, i + 2), last = byte(p, i + 3) }
    return i + 4
  elseif two == "%f" then
    if sub(p, i + 2, i + 2) ~= "[" then error("missing '[' after '%f' in pattern", 0) end
    local stop = class_end(p, i + 2)
    items[#items + 1] = { op = "frontier", set = set_of(sub(p, i + 2, stop - 1)) }
    return stop
  elseif find(two, "^%%%d") then
    items[#items + 1] = { op = "back", index = byte(p, i + 1) - 48 }
    return i + 2
  end
  return nil
end

local function compile(p)
  local program = programs[p]
  if program then return program end
  local items, i = {}, 1
  local anchored = sub(p, 1, 1) == "^"
  if anchored then i = 2 end
  while i <= #p do
    local after = special(p, i, items)
    if not after then
      after = class_end(p, i)
      local class, q = sub(p, i, after - 1), sub(p, after, after)
      if class == "$" or class == "^" then class = "%" .. class end
      local item = { op = "one", set = set_of(class) }
      if q == "*" or q == "+" or q == "-" or q == "?" then item.quantifier, after = q, after + 1 end
      items[#items + 1] = item
    end
    i = after
  end
  program = { items = items, anchored = anchored }
  if #p <= KEPT then programs[p] = program end
  return program
end

local function safe_length(p)              -- the longest subject for which C's matcher cannot exceed STEPS
  local program = compile(p)
  local items, last = program.items, #program.items
  while last > 0 and items[last].op == "close" do last = last - 1 end
  local power, steps, optional = program.anchored and 0 or 1, STEPS, false
  local starts = power
  for n, item in ipairs(items) do
    if item.quantifier == "?" then
      steps, optional = steps / 2, true
    elseif (item.quantifier and n < last) or item.op == "balance" or item.op == "back" then
      power = power + 1
    end
  end
  if power == starts and not optional then return power == 0 and STEPS > 0 and math.huge or LINEAR / #p end
  steps = steps * 16 / math.max(16, #p)    -- each step may compare much of the pattern: a set, a row of letters
  for n = 2, power do steps = steps * n end
  if power == 0 then return steps < 1 and -1 or math.huge end
  return steps ^ (1 / power) - power
end

local function safe(s, p)
  if type(s) ~= "string" or type(p) ~= "string" then return true end  -- C reports it
  weigh(#s)
  local length = cached[p]
  if not length then
    if #p > LONGEST then error("the pattern is longer than " .. LONGEST .. " bytes", 3) end
    length = safe_length(p)
    if #p <= KEPT then
      if #cached > 500 then cached, programs = {}, {} end
      cached[p] = length
      cached[#cached + 1] = p
    end
  end
  return #s <= length
end

-- The matcher: C's algorithm over the items -------------------------------------------------------------------------------------
local try

local function quantified(m, k, i, item)
  local s, set, q = m.s, item.set, item.quantifier
  if q == "?" then
    local c = byte(s, i)
    return c and set[c] and try(m, k + 1, i + 1) or try(m, k + 1, i)
  elseif q == "-" then
    while true do
      local stop = try(m, k + 1, i)
      if stop then return stop end
      local c = byte(s, i)
      if not (c and set[c]) then return nil end
      i = i + 1
    end
  end
  local j = i
  local c = byte(s, j)
  while c and set[c] do
    j = j + 1
    c = byte(s, j)
  end
  for stop_at = j, q == "+" and i + 1 or i, -1 do
    local stop = try(m, k + 1, stop_at)
    if stop then return stop end
  end
  return nil
end

local OPS = {}
function OPS.one(m, k, i, item)
  if item.quantifier then return quantified(m, k, i, item) end
  local c = byte(m.s, i)
  if c and item.set[c] then return try(m, k + 1, i + 1) end
  return nil
end
function OPS.open(m, k, i)
  if m.level >= 32 then error("too many captures", 0) end
  m.level = m.level + 1
  m[m.level] = { i, nil }
  local stop = try(m, k + 1, i)
  if not stop then m.level = m.level - 1 end
  return stop
end
function OPS.position(m, k, i)
  m.level = m.level + 1
  m[m.level] = { i, "position" }
  local stop = try(m, k + 1, i)
  if not stop then m.level = m.level - 1 end
  return stop
end
function OPS.close(m, k, i)
  for level = m.level, 1, -1 do
    local capture = m[level]
    if capture[2] == nil then
      capture[2] = i - 1
      local stop = try(m, k + 1, i)
      if not stop then capture[2] = nil end
      return stop
    end
  end
  error("invalid pattern capture", 0)
end
OPS["end"] = function(m, k, i)
  if i == #m.s + 1 then return try(m, k + 1, i) end
  return nil
end
function OPS.balance(m, k, i, item)
  local s, depth = m.s, 1
  if byte(s, i) ~= item.first then return nil end
  for j = i + 1, #s do
    local c = byte(s, j)
    if c == item.last then
      depth = depth - 1
      if depth == 0 then return try(m, k + 1, j + 1) end
    elseif c == item.first then
      depth = depth + 1
    end
  end
  return nil
end
function OPS.frontier(m, k, i, item)
  local before, here = i > 1 and byte(m.s, i - 1) or 0, byte(m.s, i) or 0
  if not item.set[before] and item.set[here] then return try(m, k + 1, i) end
  return nil
end
function OPS.back(m, k, i, item)
  local capture = m[item.index]
  if item.index > m.level or item.index < 1 or capture[2] == nil then
    error("invalid capture index %" .. item.index .. " in pattern", 0)
  end
  if capture[2] == "position" then return nil end  -- as in C: never found again
  local again = sub(m.s, capture[1], capture[2])
  if sub(m.s, i, i + #again - 1) == again then return try(m, k + 1, i + #again) end
  return nil
end

function try(m, k, i)
  local item = m.items[k]
  if not item then return i end
  return OPS[item.op](m, k, i, item)
end

local function captures(m, first, stop, whole, level)
  level = level or 1
  if level > m.level then
    if level == 1 and whole then return sub(m.s, first, stop) end
    return
  end
  local capture = m[level]
  if capture[2] == nil then error("unfinished capture", 0) end
  local value = capture[2] == "position" and capture[1] or sub(m.s, capture[1], capture[2])
  return value, captures(m, first, stop, false, level + 1)
end

local function search(s, program, init)    -- the match at or after init: matcher, first, stop
  local m = { s = s, items = program.items, level = 0 }
  for i = init, program.anchored and init or #s + 1 do
    m.level = 0
    local after = try(m, 1, i)
    if after then return m, i, after - 1 end
  end
  return nil
end

local function start(s, init)
  init = init or 1
  if init < 0 then init = #s + init + 1 end
  return init < 1 and 1 or init
end

-- The functions -----------------------------------------------------------------------------------------------------------------
local function search_plain(s, p, init)    -- in pieces: C compares all of `p` at each place that begins like it
  init = start(s, init)
  if init > #s + 1 then return nil end
  local step = 1e7 // math.max(#p, 1) + 1
  while init + #p <= #s + 1 do
    local first, stop = find(sub(s, init, init + step + #p - 2), p, 1, true)
    if first then return init + first - 1, init + stop - 1 end
    init = init + step
    weigh(1e7)
  end
  return nil
end

function string.find(s, p, init, plain)
  if type(s) ~= "string" or type(p) ~= "string" then return find(s, p, init, plain) end
  local literal = plain or #p > KEPT and not find(p, SPECIALS)
  if not literal and safe(s, p) then return find(s, p, init) end
  if literal or not find(p, SPECIALS) then
    if #p * #s < LINEAR then return find(s, p, init, true) end
    return search_plain(s, p, init)
  end
  init = start(s, init)
  if init > #s + 1 then return nil end
  local m, first, stop = search(s, compile(p), init)
  if not m then return nil end
  return first, stop, captures(m, first, stop, false)
end

function string.match(s, p, init)
  if safe(s, p) then return match(s, p, init) end
  init = start(s, init)
  if init > #s + 1 then return nil end
  local m, first, stop = search(s, compile(p), init)
  if not m then return nil end
  return captures(m, first, stop, true)
end

function string.gmatch(s, p, init)
  if type(p) == "string" and sub(p, 1, 1) == "^" then p = "%" .. p end  -- no anchor here, by C's rule too
  if safe(s, p) then return gmatch(s, p, init) end
  local at, last = start(s, init), nil
  local program = compile(p)
  return function()
    while at <= #s + 1 do
      local m, first, stop = search(s, program, at)
      if not m then at = #s + 2 return nil end
      if stop + 1 ~= last then
        at, last = stop + 1, stop + 1
        return captures(m, first, stop, true)
      end
      at = first + 1
    end
    return nil
  end
end

local function expand(template, m, first, stop)
  local whole = sub(m.s, first, stop)
  return (gsub(template, "%%(.?)", function(c)
    if c == "%" then return "%" end
    if c == "0" then return whole end
    if not find(c, "%d") then error("invalid use of '%' in replacement string", 0) end
    local value = (select(byte(c) - 48, captures(m, first, stop, true)))
    if value == nil then error("invalid capture index %" .. c .. " in replacement string", 0) end
    return tostring(value)
  end))
end

local function replacement(repl, m, first, stop)
  local value
  if type(repl) == "function" then
    value = repl(captures(m, first, stop, true))
  elseif type(repl) == "table" then
    value = repl[(captures(m, first, stop, true))]
  else
    return expand(tostring(repl), m, first, stop)
  end
  if not value then return sub(m.s, first, stop) end
  if type(value) ~= "string" and not mathtype(value) then error("invalid replacement value (a " .. type(value) .. ")", 0) end
  return tostring(value)
end

function string.gsub(s, p, repl, limit)
  local kind = type(repl)
  local usable = kind == "function" or kind == "table" or kind == "string" or kind == "number"
  local long = kind == "string" and type(s) == "string" and #repl * #s > LINEAR
  if not usable or safe(s, p) and not long then return gsub(s, p, repl, limit) end
  local program, out, at, last, count = compile(p), {}, 1, nil, 0
  while count < (limit or math.maxinteger) and at <= #s + 1 do
    local m, first, stop = search(s, program, at)
    if not m then break end
    if stop + 1 == last then               -- the empty match right after a match does not count
      if program.anchored then break end
      first = at
      out[#out + 1] = sub(s, first, first)
      at = first + 1
    else
      out[#out + 1] = sub(s, at, first - 1)
      out[#out + 1] = replacement(repl, m, first, stop)
      count, at, last = count + 1, stop + 1, stop + 1
    end
    if program.anchored then break end
  end
  out[#out + 1] = sub(s, at)
  return concat(out), count
end
