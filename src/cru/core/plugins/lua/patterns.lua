-- Pattern functions that always end. One call of C's matcher cannot be interrupted and may take for ever, so a subject that is too
-- long for its pattern goes to a matcher in Lua with the same results: slower, but the time limit reaches it.
-- Takes: weigh (counts what long functions of C do, and looks at the clock).

local weigh = ...
local string = string
local find, match, gmatch, gsub = string.find, string.match, string.gmatch, string.gsub
local byte, sub, char, concat = string.byte, string.sub, string.char, table.concat
local type, error, tostring, tonumber, select = type, error, tostring, tonumber, select
local mathtype, tointeger, maxinteger, getinfo = math.type, math.tointeger, math.maxinteger, debug.getinfo

local STEPS, LINEAR = 5e7, 1e8             -- about 0.2 s of C's matcher
local LONGEST, KEPT = 16384, 200           -- bytes of a pattern, and of one that is worth keeping
local DEEPEST, MOST_CAPTURES = 200, 32     -- calls of C's matcher inside one another; captures of a pattern
local SPECIALS = "[%^%$%*%+%?%.%(%[%%%-]"  -- without one of these C's find takes the pattern as plain text
local cached, programs = {}, {}

local HERE = getinfo(1, "S").source
local function fail(message)               -- at the place in the extension that called us, as C's functions do
  local level, frame = 2, getinfo(2, "S")
  while frame and frame.source == HERE do
    level = level + 1
    frame = getinfo(level, "S")
  end
  error(message, level)
end

-- A pattern as a list of items { op, set, quantifier, ... }. What is malformed is an item, too: C's matcher fails when it comes there,
-- which may be never. ------------------------------------------------------------------------------------------------------------
local function class_end(p, i)             -- the position after it; or nil, and what is wrong
  local c = sub(p, i, i)
  if c == "%" then
    if i == #p then return nil, "malformed pattern (ends with '%')" end
    return i + 2
  elseif c ~= "[" then
    return i + 1
  end
  i = i + 1
  if sub(p, i, i) == "^" then i = i + 1 end
  repeat
    if i > #p then return nil, "malformed pattern (missing ']')" end
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

local function special(p, i, items)        -- captures, %b, %f, %1 and the last $; returns the position after it, as class_end does
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
    if i + 3 > #p then return nil, "malformed pattern (missing arguments to '%b')" end
    items[#items + 1] = { op = "balance", first = byte(p, i + 2), last = byte(p, i + 3) }
    return i + 4
  elseif two == "%f" then
    if sub(p, i + 2, i + 2) ~= "[" then return nil, "missing '[' after '%f' in pattern" end
    local stop, problem = class_end(p, i + 2)
    if not stop then return nil, problem end
    items[#items + 1] = { op = "frontier", set = set_of(sub(p, i + 2, stop - 1)) }
    return stop
  elseif find(two, "^%%%d") then
    items[#items + 1] = { op = "back", index = byte(p, i + 1) - 48 }
    return i + 2
  end
  return nil
end

local function single(p, i, after, items)  -- a class of bytes, from i to before `after`, with its quantifier
  local class, quantifier = sub(p, i, after - 1), match(p, "^[*+?-]", after)
  if class == "$" or class == "^" then class = "%" .. class end
  items[#items + 1] = { op = "one", set = set_of(class), quantifier = quantifier }
  return quantifier and after + 1 or after
end

local function compile(p)
  local program = programs[p]
  if program then return program end
  local items, i = {}, 1
  local anchored = sub(p, 1, 1) == "^"
  if anchored then i = 2 end
  while i <= #p do
    local after, problem = special(p, i, items)
    if not after and not problem then
      after, problem = class_end(p, i)
      if after then after = single(p, i, after, items) end
    end
    if problem then items[#items + 1] = { op = "malformed", problem = problem } end
    i = after or #p + 1
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

-- The matcher: C's algorithm over the items; `depth` counts the calls of it that C would make inside one another ---------------------
local try
local function nested(m, k, i, depth)
  if depth >= DEEPEST then fail("pattern too complex") end
  return (try(m, k, i, depth + 1))         -- no tail call, as in C
end

local function quantified(m, k, i, item, depth)
  local s, set, q = m.s, item.set, item.quantifier
  if not set[byte(s, i)] then
    if q == "+" then return nil end
    return try(m, k + 1, i, depth)
  elseif q == "?" then
    local stop = nested(m, k + 1, i + 1, depth)
    if stop then return stop end
    return try(m, k + 1, i, depth)
  elseif q == "-" then
    while true do
      local stop = nested(m, k + 1, i, depth)
      if stop or not set[byte(s, i)] then return stop end
      i = i + 1
    end
  end
  local j = i + 1
  while set[byte(s, j)] do j = j + 1 end
  for stop_at = j, q == "+" and i + 1 or i, -1 do
    local stop = nested(m, k + 1, stop_at, depth)
    if stop then return stop end
  end
  return nil
end

local function opened(m, k, i, kind, depth)
  if m.level >= MOST_CAPTURES then fail("too many captures") end
  m.level = m.level + 1
  m[m.level] = { i, kind }
  local stop = nested(m, k + 1, i, depth)
  if not stop then m.level = m.level - 1 end
  return stop
end

local OPS = {}
function OPS.one(m, k, i, item, depth)
  if item.quantifier then return quantified(m, k, i, item, depth) end
  if item.set[byte(m.s, i)] then return try(m, k + 1, i + 1, depth) end
  return nil
end
function OPS.malformed(_, _, _, item) return fail(item.problem) end
function OPS.open(m, k, i, _, depth) return opened(m, k, i, nil, depth) end
function OPS.position(m, k, i, _, depth) return opened(m, k, i, "position", depth) end
function OPS.close(m, k, i, _, depth)
  for level = m.level, 1, -1 do
    local capture = m[level]
    if capture[2] == nil then
      capture[2] = i - 1
      local stop = nested(m, k + 1, i, depth)
      if not stop then capture[2] = nil end
      return stop
    end
  end
  return fail("invalid pattern capture")
end
OPS["end"] = function(m, k, i, _, depth)
  if i == #m.s + 1 then return try(m, k + 1, i, depth) end
  return nil
end
function OPS.balance(m, k, i, item, depth)
  local s, open = m.s, 1
  if byte(s, i) ~= item.first then return nil end
  for j = i + 1, #s do
    local c = byte(s, j)
    if c == item.last then
      open = open - 1
      if open == 0 then return try(m, k + 1, j + 1, depth) end
    elseif c == item.first then
      open = open + 1
    end
  end
  return nil
end
function OPS.frontier(m, k, i, item, depth)
  local before, here = i > 1 and byte(m.s, i - 1) or 0, byte(m.s, i) or 0
  if not item.set[before] and item.set[here] then return try(m, k + 1, i, depth) end
  return nil
end
function OPS.back(m, k, i, item, depth)
  local capture = m[item.index]
  if item.index > m.level or item.index < 1 or capture[2] == nil then fail("invalid capture index %" .. item.index) end
  if capture[2] == "position" then return nil end  -- as in C: never found again
  local again = sub(m.s, capture[1], capture[2])
  if sub(m.s, i, i + #again - 1) == again then return try(m, k + 1, i + #again, depth) end
  return nil
end

function try(m, k, i, depth)
  local item = m.items[k]
  if not item then return i end
  return OPS[item.op](m, k, i, item, depth)
end

local function capture_at(m, level, first, stop)  -- the whole match is the first one where a pattern has none
  if level > m.level then
    if level == 1 then return sub(m.s, first, stop) end
    fail("invalid capture index %" .. level)
  end
  local capture = m[level]
  if capture[2] == nil then fail("unfinished capture") end
  return capture[2] == "position" and capture[1] or sub(m.s, capture[1], capture[2])
end

local function captures(m, first, stop, level)
  level = level or 1
  if level > m.level and level > 1 then return end
  return capture_at(m, level, first, stop), captures(m, first, stop, level + 1)
end

local function search(s, program, init)    -- the match at or after init: matcher, first, stop
  local m = { s = s, items = program.items, level = 0 }
  for i = init, program.anchored and init or #s + 1 do
    m.level = 0
    local after = nested(m, 1, i, 0)
    if after then return m, i, after - 1 end
  end
  return nil
end

local function integer(value, default)     -- as C's functions read an optional argument; nil if it is none
  if value == nil then return default end
  return tointeger(tonumber(value) or value)
end
local function start(s, init)              -- nil: C reports it
  init = integer(init, 1)
  if not init then return nil end
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
  local first = type(s) == "string" and type(p) == "string" and start(s, init)
  if not first then return find(s, p, init, plain) end
  local literal = plain or #p > KEPT and not find(p, SPECIALS)
  if not literal and safe(s, p) then return find(s, p, first) end
  if literal or not find(p, SPECIALS) then
    if #p * #s < LINEAR then return find(s, p, first, true) end
    return search_plain(s, p, first)
  end
  if first > #s + 1 then return nil end
  local m, from, to = search(s, compile(p), first)
  if not m then return nil end
  if m.level == 0 then return from, to end
  return from, to, captures(m, from, to)
end

function string.match(s, p, init)
  local first = not safe(s, p) and start(s, init)
  if not first then return match(s, p, init) end
  if first > #s + 1 then return nil end
  local m, from, to = search(s, compile(p), first)
  if not m then return nil end
  return captures(m, from, to)
end

function string.gmatch(s, p, init)
  if type(p) == "string" and sub(p, 1, 1) == "^" then p = "%" .. p end  -- no anchor here, by C's rule too
  local at = not safe(s, p) and start(s, init)
  if not at then return gmatch(s, p, init) end
  local program, last = compile(p), nil
  return function()
    while at <= #s + 1 do
      local m, from, to = search(s, program, at)
      if not m then at = #s + 2 return nil end
      if to + 1 ~= last then
        at, last = to + 1, to + 1
        return captures(m, from, to)
      end
      at = from + 1
    end
    return nil
  end
end

local function expand(template, m, first, stop)
  local out, at = {}, 1
  while true do
    local mark = find(template, "%", at, true)
    if not mark then break end
    local c = sub(template, mark + 1, mark + 1)
    out[#out + 1] = sub(template, at, mark - 1)
    if c == "%" then
      out[#out + 1] = c
    elseif c == "0" then
      out[#out + 1] = sub(m.s, first, stop)
    elseif find(c, "^[1-9]") then
      out[#out + 1] = capture_at(m, byte(c) - 48, first, stop)
    else
      fail("invalid use of '%' in replacement string")
    end
    at = mark + 2
  end
  return concat(out) .. sub(template, at)
end

local function replacement(repl, m, first, stop)
  local value
  if type(repl) == "function" then
    value = repl(captures(m, first, stop))
  elseif type(repl) == "table" then
    value = repl[capture_at(m, 1, first, stop)]
  else
    return expand(tostring(repl), m, first, stop)
  end
  if not value then return sub(m.s, first, stop) end
  if type(value) ~= "string" and not mathtype(value) then fail("invalid replacement value (a " .. type(value) .. ")") end
  return tostring(value)
end

function string.gsub(s, p, repl, limit)
  local kind = type(repl)
  local usable = kind == "function" or kind == "table" or kind == "string" or kind == "number"
  local long = kind == "string" and type(s) == "string" and type(p) == "string" and #repl * #s > LINEAR
  local most = integer(limit, maxinteger)
  if not usable or not most or safe(s, p) and not long then return gsub(s, p, repl, limit) end
  local program, out, at, last, count = compile(p), {}, 1, nil, 0
  while count < most and at <= #s + 1 do
    local m, first, stop = search(s, program, at)
    if not m then break end
    if stop + 1 == last then               -- the empty match right after a match does not count
      out[#out + 1] = sub(s, at, at)
      at = at + 1
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
