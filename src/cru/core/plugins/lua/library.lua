-- The standard library as extensions see it: all of Lua 5.4, except what would end, hang or garble the program.
-- Takes: G (the globals of the machine), host (write: text for standard output and error; check_file: why a file must not be opened), guard (marks a coroutine as watched), weigh (counts
-- what long functions of C do, and looks at the clock), killed (is this run over?), closed (is the machine on its way out?), homes (source of a chunk -> the globals that it was loaded with).
-- Returns what gives another table of globals its own: streams(io), code(globals), modules(globals, package).

local G, host, guard, weigh, killed, closed, homes = ...
local io, os, debug, package, coroutine, table = io, os, debug, package, coroutine, table
local error, type, select, tostring, concat, getmetatable = error, type, select, tostring, table.concat, debug.getmetatable
local load, loadfile, setmetatable, xpcall, create, resume = load, loadfile, setmetatable, xpcall, coroutine.create, coroutine.resume

local function forbidden(name, instead)
  return function() error(name .. " is not available: " .. instead, 2) end
end
os.exit = forbidden("os.exit", "an extension cannot end the program")
debug.sethook = forbidden("debug.sethook", "the hook keeps the time limit")
debug.debug = forbidden("debug.debug", "standard input belongs to the program")

-- Text for a person goes to the sink of the VM; standard input and output belong to the program.
local stdin, stdout, stderr = io.stdin, io.stdout, io.stderr
local methods = getmetatable(stdout).__index
local write, read, lines = methods.write, methods.read, methods.lines

function G.print(...)
  local texts = { ... }
  for i = 1, select("#", ...) do texts[i] = tostring((select(i, ...))) end
  host.write(concat(texts, "\t") .. "\n")
end
function methods.write(file, ...)
  if file ~= stdout and file ~= stderr then return write(file, ...) end
  host.write(concat({ ... }))
  return file
end
local function own_input(file, name)
  if file == stdin then error(name .. " on standard input is not available: it belongs to the program", 3) end
  return file
end
function methods.read(file, ...) return read(own_input(file, "read"), ...) end
function methods.lines(file, ...) return lines(own_input(file, "lines"), ...) end

-- A pipe or a terminal may keep the program waiting for ever, and nothing could end that.
local io_lines, open = io.lines, io.open
function io.open(name, ...)
  local problem = type(name) == "string" and host.check_file(name)
  if problem then return nil, problem, 22 end
  return open(name, ...)
end
local function streams(io)                 -- io.write and the like, with a default input and output of their own
  local input, output = stdin, stdout
  local function chosen(file, mode, now)
    if file == nil then return now end
    if type(file) ~= "string" then return file end
    local opened, message = io.open(file, mode)
    if not opened then error(message, 3) end
    return opened
  end
  function io.input(file)
    input = chosen(file, "r", input)
    return input
  end
  function io.output(file)
    output = chosen(file, "w", output)
    return output
  end
  function io.write(...) return output:write(...) end
  function io.read(...) return own_input(input, "io.read"):read(...) end
  function io.lines(name, ...)
    if name == nil then return own_input(input, "io.lines"):lines(...) end
    local problem = type(name) == "string" and host.check_file(name)
    if problem then error(problem, 2) end
    return io_lines(name, ...)
  end
  function io.close(file) return (file or output):close() end
end
streams(io)
-- Code is text, and sees the globals that it was loaded with.
local function code(G)
  function G.load(chunk, name, mode, ...)
    if mode == "b" then return nil, "only text can be loaded" end
    if select("#", ...) == 0 then return load(chunk, name, "t", G) end
    return load(chunk, name, "t", (...))
  end
  function G.loadfile(name, mode, ...)
    if name == nil then return nil, "standard input belongs to the program" end
    local problem = type(name) == "string" and host.check_file(name)
    if problem then return nil, problem end
    homes["@" .. name] = G
    if select("#", ...) == 0 then return loadfile(name, "t", G) end
    return loadfile(name, "t", (...))
  end
  function G.dofile(name)
    local chunk, message = G.loadfile(name)
    if not chunk then error(message, 2) end
    return chunk()
  end
end
code(G)
local function modules(G, package)
  local searchpath, loaded = package.searchpath, package.loaded
  package.searchers[1] = function(name)
    local loader = package.preload[name]
    if loader ~= nil then return loader, ":preload:" end
    return "no field package.preload['" .. tostring(name) .. "']"
  end
  package.searchers[2] = function(name)
    local file, message = searchpath(name, package.path)
    if not file then return message end
    homes["@" .. file] = G
    local chunk, wrong = loadfile(file, "t", G)
    if not chunk then error("error loading module '" .. name .. "' from file '" .. file .. "':\n\t" .. wrong, 0) end
    return chunk, file
  end
  function G.require(name)                 -- in Lua, so that a module may wait while it loads
    if loaded[name] ~= nil then return loaded[name] end
    local tried = {}
    for _, searcher in ipairs(package.searchers) do
      local loader, extra = searcher(name)
      if type(loader) == "function" then
        local value = loader(name, extra)
        if value ~= nil then loaded[name] = value end
        if loaded[name] == nil then loaded[name] = true end
        return loaded[name], extra
      end
      tried[#tried + 1] = loader
    end
    error("module '" .. tostring(name) .. "' not found:\n\t" .. concat(tried, "\n\t"), 2)
  end
end
modules(G, package)

-- What runs where the hook cannot fire: a message handler called from the hook, and finalizers.
function G.xpcall(f, handler, ...)
  local function handle(message)
    if killed() then return message end
    return handler(message)
  end
  return xpcall(f, type(handler) == "function" and handle or handler, ...)
end
local wrapped = setmetatable({}, { __mode = "k" })
local function with_metatable(set)
  return function(value, meta)
    local finalizer = type(meta) == "table" and rawget(meta, "__gc")
    if type(finalizer) == "function" and not wrapped[finalizer] then
      local function watched(object)
        if not closed() then resume(guard(create(finalizer)), object) end
      end
      wrapped[watched] = true
      meta.__gc = watched
    end
    return set(value, meta)
  end
end
G.setmetatable, debug.setmetatable = with_metatable(setmetatable), with_metatable(debug.setmetatable)

-- One call of C cannot be interrupted: what may do much is counted before it begins, what would never end is refused.
local MOST = 1e7
local string, next, tonumber, collect = string, next, tonumber, collectgarbage
local function many(count, doing)
  if count > MOST then error("too many elements to " .. doing, 3) end
  if count > 100 then weigh(count) end
end
local function counted(value) return tonumber(value) or 0 end
local move, insert, remove, sort, joined, spread = table.move, table.insert, table.remove, table.sort, concat, table.unpack
function table.move(a, first, last, ...)
  many(counted(last) - counted(first), "move")
  return move(a, first, last, ...)
end
function table.insert(list, ...)
  if select("#", ...) > 1 and type(list) == "table" then many(#list - counted((...)), "move") end
  return insert(list, ...)
end
function table.remove(list, ...)
  if select("#", ...) > 0 and type(list) == "table" then many(#list - counted((...)), "move") end
  return remove(list, ...)
end
local function before(a, b) return a < b end
function table.sort(list, compare)         -- compared in Lua, so that it can be interrupted
  if compare == nil and type(list) == "table" and #list > 20 then compare = before end
  return sort(list, compare)
end
function table.concat(list, ...)
  local text = joined(list, ...)
  weigh(#text)
  return text
end
function table.unpack(list, first, last)
  if last and first then many(counted(last) - counted(first), "unpack") end
  return spread(list, first, last)
end
for _, name in next, { "upper", "lower", "reverse", "rep", "format", "pack" } do
  local original = string[name]
  string[name] = function(...)
    local text = original(...)
    weigh(#text)
    return text
  end
end
function G.collectgarbage(how, ...)
  if how == nil or how == "collect" or how == "step" then weigh(collect("count") * 10) end
  return collect(how, ...)
end
G.unpack = table.unpack
return { streams = streams, code = code, modules = modules }
