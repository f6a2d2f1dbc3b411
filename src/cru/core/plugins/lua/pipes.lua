-- os.execute and io.popen: whoever waits for a program waits as for any other call of Python, so the limits and Ctrl-C hold.
-- Takes: G (whose os and io are completed), execute and popen (of pipes.py). Returns the metatable of the files.

local G, execute, popen = ...
local io, os = G.io, G.os
local type, error, select, tonumber, setmetatable = type, error, select, tonumber, setmetatable
local find, sub, match, concat, unpack = string.find, string.sub, string.match, table.concat, table.unpack

function os.execute(command)
  if command == nil then return true end
  return execute(command)
end

local FILE = { __name = "FILE*" }
local states = setmetatable({}, { __mode = "k" })  -- file -> { program, mode, rest, at, done, closed }

local function state(file, mode)           -- nil if it is not open in this mode
  local f = states[file]
  if not f then error("a file expected, got " .. type(file), 3) end
  if f.closed then error("attempt to use a closed file", 3) end
  return f.mode == mode and f or nil
end
local function refused() return nil, "Bad file descriptor", 9 end

-- Reading: `rest` from `at` on is what has come and is not yet read.
local function more(f)
  if f.done then return false end
  local piece = f.program:read()
  if piece == nil then
    f.done, f.rest, f.at = true, "", 1
    return false
  end
  f.rest, f.at = piece, 1
  return true
end
local function filled(f) return f.at <= #f.rest or more(f) end

local function line(f, whole)
  local parts, stop = {}, nil
  while filled(f) do
    stop = find(f.rest, "\n", f.at, true)
    parts[#parts + 1] = sub(f.rest, f.at, stop and (whole and stop or stop - 1) or -1)
    f.at = stop and stop + 1 or #f.rest + 1
    if stop then break end
  end
  return #parts > 0 and concat(parts) or nil
end

local function block(f, count)
  local parts, left = {}, count
  while filled(f) and left > 0 do
    local part = sub(f.rest, f.at, f.at + left - 1)
    parts[#parts + 1], f.at, left = part, f.at + #part, left - #part
  end
  return (#parts > 0 or not f.done) and concat(parts) or nil
end

local function all(f)
  local parts = {}
  while filled(f) do
    parts[#parts + 1], f.at = sub(f.rest, f.at), #f.rest + 1
  end
  return concat(parts)
end

local NUMERALS = { "^[-+]?0[xX]%x*%.?%x*[pP][-+]?%d+", "^[-+]?0[xX]%x*%.?%x*", "^[-+]?%d*%.?%d*[eE][-+]?%d+", "^[-+]?%d*%.?%d*" }
local function number(f)
  while filled(f) do                       -- up to what is no space
    f.at = find(f.rest, "%S", f.at) or #f.rest + 1
    if f.at <= #f.rest then break end
  end
  local seen = sub(f.rest, f.at, f.at + 200)
  while #seen < 200 and match(seen, "^[-+.%w]*$") and more(f) do
    f.rest = seen .. f.rest
    seen = sub(f.rest, 1, 200)
  end
  if f.done then f.rest, f.at = seen, 1 end
  for n = 1, #NUMERALS do
    local text = match(seen, NUMERALS[n])
    if text and tonumber(text) then
      f.at = f.at + #text
      return tonumber(text)
    end
  end
  return nil
end

local FORMATS = { l = line, L = function(f) return line(f, true) end, a = all, n = number }
local function one(f, format)
  if type(format) == "number" then return block(f, format) end
  local read = type(format) == "string" and FORMATS[match(format, "^%*?(.)") or ""]
  if not read then error("bad argument to 'read' (invalid format)", 3) end
  return read(f)
end
local function read(f, ...)            -- in tail position, as level 3 is the caller of the method
  local count, values = select("#", ...), {}
  if count == 0 then return line(f) end
  for n = 1, count do
    values[n] = one(f, (select(n, ...)))
    if values[n] == nil then return unpack(values, 1, n) end
  end
  return unpack(values, 1, count)
end

local methods = {}
function methods.read(file, ...)
  local f = state(file, "r")
  if not f then return refused() end
  return read(f, ...)
end
function methods.lines(file, ...)
  local f, formats, count = state(file, "r"), { ... }, select("#", ...)
  return function()
    if not f then error("Bad file descriptor", 2) end
    state(file, "r")
    return read(f, unpack(formats, 1, count))
  end
end
function methods.write(file, ...)
  local f = state(file, "w")
  if not f then return refused() end
  local texts = { ... }
  for n = 1, select("#", ...) do
    local kind = type(texts[n])
    if kind ~= "string" and kind ~= "number" then error("bad argument #" .. n .. " to 'write' (string expected, got " .. kind .. ")", 2) end
  end
  local ok, message, code = f.program:write(concat(texts))
  if not ok then return nil, message, code end
  return file
end
function methods.close(file)
  local f = states[file]
  state(file)
  f.closed = true
  return f.program:close()
end
function methods.flush(file)               -- nothing is held back
  state(file)
  return file
end
function methods.setvbuf(file)
  state(file)
  return true
end
function methods.seek() return nil, "Illegal seek", 29 end
FILE.__index = methods
function FILE.__tostring(file) return states[file].closed and "file (closed)" or "file (of a command)" end
function FILE.__close(file)
  if not states[file].closed then methods.close(file) end
end

function io.popen(command, mode)
  mode = mode or "r"
  if type(command) ~= "string" then error("bad argument #1 to 'popen' (string expected, got " .. type(command) .. ")", 2) end
  if mode ~= "r" and mode ~= "w" then error("bad argument #2 to 'popen' (invalid mode)", 2) end
  local program, message, code = popen(command, mode)
  if not program then return nil, message, code end
  local file = setmetatable({}, FILE)
  states[file] = { program = program, mode = mode, rest = "", at = 1 }
  return file
end
local kind_of = io.type
function io.type(...)
  local f = states[(...)]
  if f then return f.closed and "closed file" or "file" end
  return kind_of(...)
end
return FILE
