-- The standard library as extensions see it: all of Lua 5.4, except what would end, hang or garble the program.
-- Takes: G (their globals), host.write (text for standard output and error), guard (marks a coroutine as watched), killed (is this run over?),
-- closed (is the machine on its way out?).

local G, host, guard, killed, closed = ...
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
local write, read, lines, close = methods.write, methods.read, methods.lines, methods.close

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
function io.write(...) return io.output():write(...) end
function io.read(...) return read(own_input(io.input(), "io.read"), ...) end
local io_lines = io.lines
function io.lines(name, ...)
  if name == nil then return lines(own_input(io.input(), "io.lines"), ...) end
  return io_lines(name, ...)
end
function io.close(file) return close(file or io.output()) end
if package.config:sub(1, 1) == "/" then    -- a child's output must not garble ours
  local execute = os.execute
  local function run(command, output) return execute("{ " .. command .. "\n} </dev/null " .. output) end
  function os.execute(command)
    if command == nil then return execute() end
    return run(command, "1>&2")
  end
  function io.popen(command, mode)         -- lupa's Lua has none; this one returns when the command has ended
    if mode ~= nil and mode ~= "r" then error("io.popen is available for reading only: use cru.shell.exec", 2) end
    local name = os.tmpname()
    run(command, ">'" .. name .. "'")
    local file, message = io.open(name)
    os.remove(name)
    return file, message
  end
end

-- Code is text, and sees the globals of extensions.
function G.load(chunk, name, mode, ...)
  if mode == "b" then return nil, "only text can be loaded" end
  if select("#", ...) == 0 then return load(chunk, name, "t", G) end
  return load(chunk, name, "t", (...))
end
function G.loadfile(name, mode, ...)
  if name == nil then return nil, "standard input belongs to the program" end
  if select("#", ...) == 0 then return loadfile(name, "t", G) end
  return loadfile(name, "t", (...))
end
function G.dofile(name)
  local chunk, message = G.loadfile(name)
  if not chunk then error(message, 2) end
  return chunk()
end
local function from_path(name)
  local file, message = package.searchpath(name, package.path)
  if not file then return message end
  local chunk, wrong = loadfile(file, "t", G)
  if not chunk then error("error loading module '" .. name .. "' from file '" .. file .. "':\n\t" .. wrong, 0) end
  return chunk, file
end
package.searchers[2] = from_path
function G.require(name)                   -- in Lua, so that a module may wait while it loads
  local loaded = package.loaded
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
local move = table.move
function table.move(a, first, last, ...)
  if type(first) == "number" and type(last) == "number" and last - first > 1e7 then error("too many elements to move", 2) end
  return move(a, first, last, ...)
end
G.unpack = table.unpack
