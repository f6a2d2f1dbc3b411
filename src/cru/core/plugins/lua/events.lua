-- What a handler gets: its context, and the event. The names of an event's fields go over once, as a shape; then only the values.
-- Takes: P (pack.lua). Returns define(number, fields, name, identifier) and arguments(id, number, data).

local P = ...
local byte, sub, format, concat, type = string.byte, string.sub, string.format, table.concat, type
local load, setmetatable = load, setmetatable
local events, objects, read_at = P.events, P.objects, P.read_at
local EVENT_META, OBJECT_META, TOKEN = P.event_meta, P.object_meta, P.token_meta

local function take(s, i, waiting, key)    -- what is no short text and no boolean; a field that waits goes to `waiting`
  local value, after, waits = read_at(s, i)
  if waits then waiting[key] = waits end
  return value, after
end

-- A function (bytes) -> the table of the event, the same again as it was sent, and the fields that wait. Its code knows the fields.
local FIELD = [[
  b = byte(s, i)
  if b >= 0xa0 and b < 0xc0 then
    stop = i + b - 0xa0
    v%d, i = sub(s, i + 1, stop), stop + 1
  elseif b == 0xc3 then v%d, i = true, i + 1
  elseif b == 0xc2 then v%d, i = false, i + 1
  else v%d, i = take(s, i, waiting, %q) end]]
local READER = [[
local byte, sub, take = ...
return function(s)
  local waiting, i, b, stop = { summary = true, payload = true }, %d, nil, nil
  local %s
%s
  return { %s }, { %s }, waiting
end]]
local function reader(fields, name, identifier)
  local names, code, items = {}, {}, { format("type = %q, event_type = %q", name, name) }
  for n, field in ipairs(fields) do
    names[n] = "v" .. n
    code[n] = format(FIELD, n, n, n, n, field)
    items[#items + 1] = format("[%q] = v%d", field, n)
    if field == identifier then items[#items + 1] = "identifier = v" .. n end
    if field == "name" then name = nil end
  end
  if name then items[#items + 1] = format("name = %q", name) end
  local head = #fields < 16 and 2 or 4     -- where the first value begins
  local all = concat(items, ", ")
  local text = format(READER, head, concat(names, ", "), concat(code, "\n"), all, all)
  return load(text, "=[cru event]", "t", {})(byte, sub, take)
end

local readers = {}
local function define(number, fields, name, identifier) readers[number] = reader(fields, name, identifier) end

local function arguments(id, number, data)
  local event, sent, waiting = (readers[number] or P.read_flat)(data)
  local held = setmetatable({ id = id, data = data, sent = sent, waiting = waiting }, TOKEN)
  events[event] = held
  local context = setmetatable({}, OBJECT_META)
  objects[context] = held
  return context, setmetatable(event, EVENT_META)
end

return define, arguments
