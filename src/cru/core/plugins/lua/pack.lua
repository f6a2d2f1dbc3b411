-- Values as bytes, both ways: MessagePack, so that nothing but bytes and small integers crosses between Lua and Python.
-- Rules: tables 1..n and marked arrays are lists; other tables are maps with text or integer keys; integers and floats stay what they
-- are; text that is not UTF-8 travels as extension RAW; what has an identity travels as its number (FUNCTION, TABLE, HOST, OBJECT).
-- An EVENT is a number and a map, in which a field may be SMALL (bytes, read when the field is) or LAZY (Python is asked for it then).
-- A long text goes to Python as RAW, too, which is read as fast.

local host, getmetatable = ...             -- host: make_function, fetch; getmetatable: the raw one
local byte, sub, char, concat = string.byte, string.sub, string.char, table.concat
local pack_, unpack_, spread, utf8len, mathtype = string.pack, string.unpack, table.unpack, utf8.len, math.type
local getinfo = debug.getinfo
local next, type, error, rawlen, rawset, setmetatable, tostring = next, type, error, rawlen, rawset, setmetatable, tostring

local DEPTH, LONG = 100, 100               -- levels of tables; bytes of a text
local RAW, FUNCTION, TABLE, HOST, OBJECT, EVENT, SMALL, LAZY = 1, 2, 3, 4, 5, 6, 7, 8
local ARRAY, MAP, BOX = { __name = "array" }, { __name = "map" }, {}
local null = debug.upvalueid(function() return host end, 1)  -- a light userdata: truthy, unique, and no table
debug.setmetatable(null, { __name = "null", __tostring = function() return "null" end })

-- Identities -------------------------------------------------------------------------------------------------------------------
local refs, ids, crossings, last = {}, setmetatable({}, { __mode = "k" }), {}, 0  -- Lua values that Python holds
local weak = { __mode = "k" }
local host_ids = setmetatable({}, weak)    -- Lua function -> number of the Python callable behind it
local objects = setmetatable({}, weak)     -- proxy -> what holds the Python object behind it: { id }
local events = setmetatable({}, weak)      -- table of an event -> { id, data, what was sent, what waits: where in the data, or true }

local function reference(value)
  local id = ids[value]
  if not id then
    last = last + 1
    id = last
    ids[value], refs[id], crossings[id] = id, value, 0
  end
  crossings[id] = crossings[id] + 1
  return id
end

local function release(id, count)
  local left = (crossings[id] or 0) - count
  if left > 0 then crossings[id] = left return end
  local value = refs[id]
  if value ~= nil then ids[value] = nil end
  refs[id], crossings[id] = nil, nil
end

local dead = {}                            -- numbers that Lua needs no more
local TOKEN = { __gc = function(token) dead[#dead + 1] = token.id end }
local function token(id) return setmetatable({ id = id }, TOKEN) end

local OBJECT_META = { __name = "object", __metatable = "object" }
local function give_back(release)          -- all of them in one call
  if #dead == 0 then return end
  local numbers = concat(dead, " ")
  dead = {}
  release(numbers)
end

-- Writing ----------------------------------------------------------------------------------------------------------------------
local FIXSTR, INT = {}, {}
for n = 0, 31 do FIXSTR[n] = char(0xa0 + n) end
for n = 0, 127 do INT[n] = char(n) end

local out, size = {}, 0
local write

local function put(text) size = size + 1 out[size] = text end

local function extension(code, id) return pack_(">BBi8", 0xd7, code, id) end

local function text(value)
  local length, at = #value, size + 1
  if length > LONG or not utf8len(value) then  -- to look at each letter of a long one costs more than the extension
    out[at] = pack_(">BI4B", 0xc9, length, RAW)
  else
    out[at] = FIXSTR[length] or pack_(">BI4", 0xdb, length)
  end
  size = at + 1
  out[size] = value
end

local function number(value)
  size = size + 1
  if mathtype(value) == "float" then
    out[size] = pack_(">Bd", 0xcb, value)
  else
    out[size] = INT[value] or pack_(">Bi8", 0xd3, value)
  end
end

local function is_list(value, meta)
  local length = rawlen(value)
  if meta == MAP or (length == 0 and meta ~= ARRAY) then return false end
  local count = 0
  for _ in next, value do
    count = count + 1
    if count > length then return false end
  end
  return count == length, length
end

local heads, heads_count = {}, 0           -- keys come again and again: text -> how it is written
local function head(key)
  local length = #key
  if length > 31 or not utf8len(key) then return nil end
  if heads_count > 2000 then heads, heads_count = {}, 0 end
  local written = FIXSTR[length] .. key
  heads[key], heads_count = written, heads_count + 1
  return written
end

local function key_(key)
  if type(key) == "string" then
    text(key)
  elseif mathtype(key) == "integer" then
    number(key)
  else
    error("a table with a " .. type(key) .. " as key is no data (" .. tostring(key) .. ")", 0)
  end
end

local function map(value, sent, depth)     -- sent: write only what differs from it; a table in an event may have been changed in place
  local slot, count = size + 1, 0
  size = slot
  for key, item in next, value do
    local kind = type(item)
    if not sent or kind == "table" or item ~= sent[key] or key == "type" then
      local written = heads[key] or type(key) == "string" and head(key)
      if written then
        size = size + 1
        out[size] = written
      else
        key_(key)
      end
      if kind == "string" then text(item) else write(item, depth, sent) end
      count = count + 1
    end
  end
  out[slot] = count < 16 and char(0x80 + count) or pack_(">BI4", 0xdf, count)
end

local function list(value, length, depth)
  put(length < 16 and char(0x90 + length) or pack_(">BI4", 0xdd, length))
  for i = 1, length do write(value[i], depth) end
end

local read_all
local function table_(value, depth, changed)
  local meta = getmetatable(value)
  if meta == OBJECT_META then return put(extension(OBJECT, objects[value].id)) end
  if meta == BOX then return put(extension(TABLE, reference(value[1]))) end
  if depth >= DEPTH then error("data nested deeper than " .. DEPTH .. " levels, or a table that contains itself", 0) end
  local ordered, length = is_list(value, meta)
  if ordered then
    if meta and meta ~= ARRAY then value = { spread(value, 1, length) } end
    return list(value, length, depth + 1)
  end
  local event = events[value]
  if event and not changed then read_all(value) end
  return map(value, event and changed and event.sent, depth + 1)
end

local function function_(value)
  local id = host_ids[value]
  if id then return put(extension(HOST, id)) end
  if ids[value] then return put(extension(FUNCTION, reference(value))) end
  local info = getinfo(value, "S")         -- the first time it goes over with its place
  local place = info.source .. ":" .. info.linedefined
  put(pack_(">BI4Bi8", 0xc9, #place + 8, FUNCTION, reference(value)))
  put(place)
end

local WRITE = {
  ["nil"] = function() put("\xc0") end,
  boolean = function(value) put(value and "\xc3" or "\xc2") end,
  number = number, string = text, table = table_, ["function"] = function_,
}

function write(value, depth, changed)      -- changed: of an event only what differs from what was sent
  local writer = WRITE[type(value)]
  if writer then return writer(value, depth, changed) end
  if value == null then return put("\xc0") end
  error("a " .. type(value) .. " is no data (" .. tostring(value) .. ")", 0)
end

local function written(changed, ...)
  size = 0
  local count = select("#", ...)
  put(count < 16 and char(0x90 + count) or pack_(">BI4", 0xdd, count))
  if count == 1 then
    write((...), 0, changed)
  elseif count > 1 then
    local values = { ... }
    for i = 1, count do write(values[i], 0, changed) end
  end
  local bytes = concat(out, "", 1, size)
  if size > 1000 then out = {} else for i = 1, size do out[i] = nil end end
  return bytes
end
local function pack(...) return written(false, ...) end  -- any values -> one list, as bytes
local function pack_answer(...) return written(true, ...) end  -- the same of what a call returned

-- Reading ----------------------------------------------------------------------------------------------------------------------
local READ, nothing, lazy = {}, nil, nil   -- nothing: what null is read as; lazy: the field just read waits (true, or where it is)
local read

local function deeper(depth)
  if depth >= DEPTH then error("data nested deeper than " .. DEPTH .. " levels", 0) end
  return depth + 1
end

local EVENT_META = { __name = "event" }
local function read_field(t, key)
  local event = events[t]
  local waits = event and event.waiting[key]
  if not waits then return nil end
  local value
  if waits == true then value = host.fetch(event.id, key) else value = read(event.data, waits, 1) end
  event.waiting[key] = nil
  rawset(t, key, value)
  return value
end
function read_all(t)
  local keys = {}
  for key in next, events[t].waiting do keys[#keys + 1] = key end
  for _, key in next, keys do read_field(t, key) end
end
EVENT_META.__index = read_field
EVENT_META.__newindex = function(t, key, value)
  if events[t] then events[t].waiting[key] = nil end
  rawset(t, key, value)
end
EVENT_META.__pairs = function(t)
  if events[t] then read_all(t) end
  return next, t, nil
end

local function read_map(s, i, count, depth, sent, waiting)  -- sent, waiting: of an event
  depth = deeper(depth)
  local t, key, value = {}, nil, nil
  for _ = 1, count do
    local b = byte(s, i)                   -- short text is read in place: a call would cost as much again
    if b >= 0xa0 and b < 0xc0 then
      local stop = i + b - 0xa0
      key, i = sub(s, i + 1, stop), stop + 1
    else
      key, i = read(s, i, depth)
      if type(key) ~= "string" then
        if mathtype(key) ~= "integer" then error("a key of data must be text or an integer, not a " .. type(key), 0) end
        setmetatable(t, MAP)
      end
    end
    b = byte(s, i)
    if b >= 0xa0 and b < 0xc0 then
      local stop = i + b - 0xa0
      value, i = sub(s, i + 1, stop), stop + 1
    else
      value, i = read(s, i, depth)
    end
    if sent and lazy then
      waiting[key], lazy = lazy, nil
    elseif sent then
      t[key], sent[key] = value, value
    else
      t[key] = value
    end
  end
  return t, i
end

local function read_fields(s, i)           -- of an event: the table, where it ends, what was sent, what waits
  local b, count, sent, waiting, t = byte(s, i), nil, {}, {}, nil
  if b < 0x90 then count, i = b - 0x80, i + 1 else count, i = unpack_(b == 0xde and ">I2" or ">I4", s, i + 1) end
  t, i = read_map(s, i, count, 0, sent, waiting)
  return t, i, sent, waiting
end
local function read_event(id, s, i)
  local t, after, sent, waiting = read_fields(s, i)
  events[t] = setmetatable({ id = id, data = s, sent = sent, waiting = waiting }, TOKEN)
  return setmetatable(t, EVENT_META), after
end

local function read_list(s, i, count, depth)
  depth = deeper(depth)
  local t, value = setmetatable({}, ARRAY), nil
  for n = 1, count do
    value, i = read(s, i, depth)
    if value == nil then value = null end
    t[n] = value
  end
  return t, i
end

local function object(id)
  local proxy = setmetatable({}, OBJECT_META)
  objects[proxy] = token(id)
  return proxy
end

local EXTENSION = {
  [FUNCTION] = function(id) return refs[id] end,
  [TABLE] = function(id) return refs[id] end,
  [HOST] = function(id)
    local f = host.make_function(id, token(id))
    host_ids[f] = id
    return f
  end,
  [OBJECT] = object,
}
local function read_extension(s, i, length)
  local code = byte(s, i)
  local after = i + 1 + length
  if code == SMALL then
    lazy = i + 1
  elseif code == LAZY then
    lazy = true
  elseif code == EVENT then
    return read_event(unpack_(">i8", s, i + 1), s, after)
  elseif EXTENSION[code] then
    return EXTENSION[code](unpack_(">i8", s, i + 1)), after
  else
    error("data of a kind that Lua has not (a time stamp?)", 0)
  end
  return nil, after
end

local function format(fmt)
  return function(s, i) return unpack_(fmt, s, i) end
end
READ[0xc0] = function(_, i) return nothing, i end
READ[0xc2] = function(_, i) return false, i end
READ[0xc3] = function(_, i) return true, i end
for code, fmt in next, { [0xc4] = ">s1", [0xc5] = ">s2", [0xc6] = ">s4", [0xd9] = ">s1", [0xda] = ">s2", [0xdb] = ">s4", [0xcb] = ">d",
  [0xcc] = ">I1", [0xcd] = ">I2", [0xce] = ">I4", [0xd0] = ">i1", [0xd1] = ">i2", [0xd2] = ">i4", [0xd3] = ">i8" } do
  READ[code] = format(fmt)
end
READ[0xcf] = function(s, i)
  local value = unpack_(">i8", s, i)
  if value < 0 then value = value + 0x1p64 end   -- beyond an integer: a float, as Lua's own reader does
  return value, i + 8
end
for code, sized in next, { [0xdc] = { ">I2", read_list }, [0xdd] = { ">I4", read_list }, [0xde] = { ">I2", read_map }, [0xdf] = { ">I4", read_map } } do
  READ[code] = function(s, i, depth)
    local count, after = unpack_(sized[1], s, i)
    return sized[2](s, after, count, depth)
  end
end
for code, length in next, { [0xd4] = 1, [0xd5] = 2, [0xd6] = 4, [0xd7] = 8, [0xd8] = 16 } do
  READ[code] = function(s, i) return read_extension(s, i, length) end
end
for code, fmt in next, { [0xc7] = ">I1", [0xc8] = ">I2", [0xc9] = ">I4" } do
  READ[code] = function(s, i)
    local length, at = unpack_(fmt, s, i)
    return read_extension(s, at, length)
  end
end

function read(s, i, depth)
  local b = byte(s, i)
  if b >= 0xa0 and b < 0xc0 then
    local stop = i + b - 0xa0
    return sub(s, i + 1, stop), stop + 1
  elseif b < 0x80 then
    return b, i + 1
  elseif b < 0x90 then
    return read_map(s, i + 1, b - 0x80, depth)
  elseif b < 0xa0 then
    return read_list(s, i + 1, b - 0x90, depth)
  elseif b >= 0xe0 then
    return b - 256, i + 1
  end
  local reader = READ[b]
  if not reader then error("data of a kind that Lua has not", 0) end
  return reader(s, i + 1, depth)
end

local function from(s, i)
  if i > #s then return end
  local value, after = read(s, i, 0)
  if after > #s then return value end
  return value, from(s, after)
end

local function values(s)                   -- bytes -> the values, one after the other
  nothing, lazy = nil, nil
  return from(s, 1)
end

local function read_at(s, i)               -- a value, the position after it, and what waits if it is a field that does
  nothing, lazy = nil, nil
  local value, after = read(s, i, 1)
  return value, after, lazy
end
local function read_flat(s)                -- an event that has no shape: its table, what was sent, and what waits
  nothing, lazy = nil, nil
  local t, _, sent, waiting = read_fields(s, 1)
  return t, sent, waiting
end

local function values_with_null(s)         -- the same, JSON null is the sentinel
  nothing, lazy = null, nil
  local value = read(s, 1, 0)
  nothing = nil
  return value
end

return {
  pack = pack, pack_answer = pack_answer, values = values, values_with_null = values_with_null,
  null = null, array = function(t) return setmetatable(t, ARRAY) end, box = function(t) return setmetatable({ t }, BOX) end,
  next = function(t, key)
    if key == nil and events[t] then read_all(t) end
    return next(t, key)
  end,
  metas = { ARRAY, MAP, EVENT_META, OBJECT_META, getmetatable(null) },  -- those of values that plugins get
  refs = refs, reference = reference, release = release, give_back = give_back, objects = objects, object_meta = OBJECT_META,
  events = events, event_meta = EVENT_META, token_meta = TOKEN, read_at = read_at, read_flat = read_flat,
}
