-- The driver. Python calls start, resume and cancel with numbers and bytes; everything of an extension runs in a watched coroutine.
-- host: the callbacks of Python (they never raise, and no finalizer calls one: the machine may be on its way out). chunks: the texts of the other files, but for plugins.lua.

local host, chunks = ...
local sethook, gethook, traceback, getinfo = debug.sethook, debug.gethook, debug.traceback, debug.getinfo
local create, resume_, yield, status, close = coroutine.create, coroutine.resume, coroutine.yield, coroutine.status, coroutine.close
local isyieldable, sub, rawequal = coroutine.isyieldable, string.sub, rawequal
local error, pcall, type, tostring, rawget, rawset, setmetatable = error, pcall, type, tostring, rawget, rawset, setmetatable
local getmetatable, next, load, match, package, clock, select = debug.getmetatable, next, load, string.match, package, os.clock, select
local sort, concat = table.sort, table.concat

local DONE, WAITING, FAILED = 0, 1, 2      -- how a run came back to Python
local VALUES, NOTHING, WAIT, ERROR, STOP, NULLS, METHOD = 0, 1, 2, 3, 4, 5, 6  -- how Python answers a call
local STEP, SLOW = 1000, 20                -- instructions between two looks at the clock; the same where they are slow
local PAUSE = 0.005                        -- seconds of processor time before Python is asked

-- The time limit ----------------------------------------------------------------------------------------------------------------
local killed = false                       -- the run that is going on is over: nothing may catch that
local looked = 0
local function hook(_, _, at_once)
  if not killed then
    local now = clock()
    local passed = now - looked
    if passed < PAUSE and not at_once then return end
    local step, _, _, count = passed > PAUSE * 2 and SLOW or STEP, gethook()  -- slow: they copy big texts
    if count and count ~= step then sethook(hook, "", step) end
    looked = now
    killed = host.expired() or false
  end
  if killed then
    sethook(hook, "", 1)                   -- every instruction from now on, so that pcall cannot go on
    error(killed, 0)
  end
end
local function guard(co)
  sethook(co, hook, "", STEP)
  return co
end
local weight = 0                           -- what long functions of C have done since the last look: bytes or elements
local function weigh(amount)
  weight = weight + amount
  if weight > 1e6 then
    weight = 0
    hook(nil, nil, true)
  end
end
local function stop(reason)
  killed = reason
  sethook(hook, "", 1)
  error(reason, 0)
end

-- Calls of Python ---------------------------------------------------------------------------------------------------------------
local WAITS, RESUMED = {}, {}              -- what a waiting call yields, and what it is resumed with
local P                                    -- pack.lua
local define, arguments                    -- events.lua
local host_error                           -- what Python raised last
local finish
local function method(name)
  return function(self, ...)
    local held = type(self) == "table" and P.objects[self]
    if not held then error("call it with a colon: object:" .. name .. "(...)", 2) end
    return finish(host.method(held.id, name, P.pack(...)))
  end
end
local methods = setmetatable({}, { __index = function(t, name)
  local f = method(name)
  t[name] = f
  return f
end })
function finish(tag, data)                 -- called in tail position: level 2 is the caller in the extension
  if tag == WAIT then
    if not isyieldable() then
      host.forget()
      error("this call waits, which is not possible here (in a comparison of sort, a replacement of gsub or a finalizer)", 2)
    end
    local token
    token, tag, data = yield(WAITS)
    if token ~= RESUMED then error("a coroutine that waits for the program was resumed", 2) end
  end
  if tag == VALUES then return P.values(data) end
  if tag == NOTHING then return nil end  -- one value: tostring(f()) works
  if tag == ERROR then
    local value, as_it_was = P.values(data)
    host_error = value
    error(value, as_it_was and 0 or 2)
  end
  if tag == NULLS then return P.values_with_null(data) end
  if tag == METHOD then return methods[data] end
  if tag == STOP then return stop("the program stopped this call") end
  error("not enough memory", 2)
end

-- Coroutines of extensions: watched, and a call that waits inside one waits for all that surround it ------------------------------
local busy = setmetatable({}, { __mode = "k" })  -- coroutines that wait for Python
local function pass(co, ok, first, ...)
  if ok and first == WAITS then
    if not isyieldable() then
      host.forget()
      return false, "this call waits, which is not possible here"
    end
    busy[co] = true
    local token, tag, data = yield(WAITS)
    busy[co] = nil
    return pass(co, resume_(co, token, tag, data))
  end
  if killed then stop(killed) end
  return ok, first, ...
end
local function resume(co, ...)
  if busy[co] then return false, "cannot resume a coroutine that waits for the program" end
  return pass(co, resume_(co, ...))
end
local function returned(co, ok, first, ...)
  if ok then return first, ... end
  if status(co) ~= "dead" then error(first, 3) end
  close(co)
  error(first, 0)
end
function coroutine.create(f) return guard(create(f)) end
coroutine.resume = resume
function coroutine.wrap(f)
  local co = guard(create(f))
  return function(...) return returned(co, resume(co, ...)) end
end
function coroutine.status(co) return busy[co] and "normal" or status(co) end

-- Runs --------------------------------------------------------------------------------------------------------------------------
local waiting = {}                         -- call -> its coroutine, while it waits
local function place(co, message)          -- the file and the line of an error, with the whole name of the file
  local short, line = match(type(message) == "string" and message or "", "^([^\n:]+):(%d+): ")
  local found = short and short .. ":" .. line or ""
  for level = 0, 100 do
    local info = getinfo(co, level, "Sl")
    if not info then break end
    local here = info.short_src .. ":" .. info.currentline
    if info.currentline > 0 and match(info.source, "^=%[cru") == nil and (found == "" or found == here) then
      return (match(info.source, "^@(.*)") or info.short_src) .. ":" .. info.currentline
    end
  end
  return found
end

local function keys_of_error(err)                  -- a table without words of its own, by its keys
  local keys, count = {}, 0
  for key in next, err do
    count = count + 1
    if count <= 8 then keys[count] = (type(key) == "string" or type(key) == "number") and tostring(key) or type(key) end
  end
  if count == 0 then return "an error object that is an empty table" end
  sort(keys)
  return "an error object that is a table with keys " .. concat(keys, ", ") .. (count > 8 and ", …" or "")
end

local function error_text(err)                   -- the error as text; runs the extension's __tostring, in a watched coroutine
  if type(err) == "string" then return err end
  if err == nil then return "an error without a message: error(nil)" end
  local meta = getmetatable(err)
  if type(err) == "table" and type(rawget(err, "message")) == "string" then return err.message end
  local own_tostring = meta and rawget(meta, "__tostring")
  if own_tostring or type(err) ~= "table" then
    local ok, text = resume_(guard(create(tostring)), err)
    if ok then return text end
  end
  local is = type(err) == "table" and keys_of_error(err) or "an error object that is a " .. type(err)
  return own_tostring and is .. ", whose __tostring fails" or is
end

local function stack_trace(co)                   -- traceback walks the whole stack: minutes for a runaway recursion
  return getinfo(co, 500, "l") and "stack traceback:\n\t(deeper than 500 calls)" or traceback(co)
end

local function is_host_error(err)          -- Lua, or the extension, may have put words before a text
  if type(err) == "string" and type(host_error) == "string" then return sub(err, -#host_error) == host_error end
  return rawequal(err, host_error)
end

-- FAILED, the message, the traceback, the place, the message without its place, whether Python raised it, the packed error object
local function failure(co, err)
  local inner = type(err) == "string" and match(err, "^%[cru %a+%]:%d+: (.*)$")  -- the stack was full when the hook was called
  err = inner or err
  local where, trace = place(co, err), stack_trace(co)
  local text = error_text(err)
  local reason = not inner and err ~= killed and match(text, "^[^\n:]+:%d+: (.*)$") or text
  if (inner or err == killed) and where ~= "" then
    err = where .. ": " .. err
    text = err
  end
  local ok, original = pcall(P.pack, err)
  return FAILED, text, trace, where, reason, is_host_error(err), ok and original or nil
end

local function drive(call, co, ok, ...)
  if not ok then return failure(co, (...)) end
  if killed then return failure(co, killed) end  -- some functions of C catch it: load, coroutine.close
  if status(co) == "dead" then             -- packed here, where no hook slows it down; the memory limit bounds it
    if select("#", ...) == 0 then return DONE, nil end
    local packed, data = pcall(P.pack_answer, ...)
    if packed then return DONE, data end
    return FAILED, data, "", "", data, false, nil
  end
  if ... == WAITS then
    waiting[call] = co
    return WAITING, nil
  end
  close(co)
  local reason = "attempt to yield from outside a coroutine"
  return FAILED, reason, "", "", reason, false, nil
end

local function ended(outer, ...)           -- `killed` belongs to the run that was going on
  killed = outer
  return ...
end

local function launch(call, ref, ...)
  local outer, co = killed, create(P.refs[ref])
  killed = false
  sethook(co, hook, "", STEP)
  return ended(outer, drive(call, co, resume_(co, ...)))
end
local function start(call, ref, data)
  P.give_back(host.release)
  return launch(call, ref, P.values(data))
end

local function handle(call, ref, id, shape, data)  -- the same for a handler, with its context and an event
  P.give_back(host.release)
  return launch(call, ref, arguments(id, shape, data))
end

local function go_on(call, tag, data)
  local outer, co = killed, waiting[call]
  killed, waiting[call] = false, nil
  return ended(outer, drive(call, co, resume_(co, RESUMED, tag, data)))
end

local function cancel(call)
  local outer, co = killed, waiting[call]
  killed, waiting[call] = false, nil
  if co then close(co) end
  killed = outer
end

-- The globals of extensions: their own table, so that nothing that they do to it reaches the driver -------------------------------
local G, E = {}, {}                        -- theirs, and the one of our own chunks
for name, value in next, _G do G[name], E[name] = value, value end
G._G, G.python = G, nil
package.loaded._G, package.loaded.python = G, nil
local function own(chunk, name) return load(chunk, "=[cru " .. name .. "]", "t", E) end
P = own(chunks.pack, "pack")({
  fetch = function(id, key) return finish(host.fetch(id, key)) end,
  make_function = function(id, token)
    return function(...)
      local _ = token                      -- lives as long as this function
      return finish(host.call(id, P.pack(...)))
    end
  end,
}, getmetatable)
define, arguments = own(chunks.events, "events")(P)
P.object_meta.__index = function(proxy, name) return finish(host.read(P.objects[proxy].id, P.pack(name))) end
P.object_meta.__newindex = function(proxy, name, value) return finish(host.assign(P.objects[proxy].id, P.pack(name, value))) end
P.object_meta.__tostring = function(proxy) return "object: " .. P.objects[proxy].id end
own(chunks.patterns, "patterns")(weigh)
G.next = P.next
local closed = false
local homes = setmetatable({}, { __mode = "v" })  -- source of a chunk -> the globals that it was loaded with
local library = own(chunks.library, "library")(G, host, guard, weigh, function() return killed end, function() return closed end, homes)
local function outside(id) return function(...) return finish(host.call(id, P.pack(...))) end end
local files = own(chunks.pipes, "pipes")(G, outside(host.execute), outside(host.popen))
local function install_names() end               -- puts the names of `cru` into globals; install knows them
local metas = { getmetatable(""), getmetatable(G.io.stdout), files, table.unpack(P.metas) }
local install, own_metatable = own(chunks.names, "names")(P)
local function add_names(...) return install_names(...) end
local new_globals = own(chunks.sandbox, "sandbox")(G, library, add_names, homes, metas, own_metatable)
local bare = _G
for name in next, bare do bare[name] = nil end  -- the VM looks for `debug` here on every call, unprotected: it finds nothing

-- The functions that Python calls by number, in the order of driver.BUILTINS --------------------------------------------------------
local shared = { __index = G }
local plugin_globals = setmetatable({}, { __mode = "k" })  -- globals of a file -> those of its plugin
local function environment(seed, within)
  if not within then return setmetatable(seed or {}, shared) end
  local env = setmetatable(seed, { __index = within })
  env._G, plugin_globals[env] = env, within
  library.code(env)
  return env
end

local builtins = {
  function(source, name, env)              -- load
    local f, message = load(source, name, "t", env or environment())
    if not f then error(message, 0) end
    homes[name] = plugin_globals[env]
    return f
  end,
  P.box,                                   -- hold
  function(...) return ... end,            -- copy
  rawget,                                  -- get
  function(t, key, value) rawset(t, key, value) end,  -- set
  function(t, key)                         -- open
    local value = rawget(t, key)
    return type(value) == "table" and P.box(value) or nil
  end,
  function(...) return P.box(environment(...)) end,  -- environment
  function() return P.box(G) end,          -- globals
  function(f)                              -- where
    local info = getinfo(f, "S")
    return info.source, info.linedefined
  end,
  function(path) package.path = path end,  -- path
  function(...)                            -- install
    install_names = install(...)
    install_names(G, package)
  end,
  define,                                  -- shape
  function()                               -- own globals
    local R = new_globals()
    plugin_globals[R] = R
    return P.box(R)
  end,
}
for n = 1, #builtins do P.reference(builtins[n]) end

return start, handle, go_on, cancel, P.release, function() closed = true end
