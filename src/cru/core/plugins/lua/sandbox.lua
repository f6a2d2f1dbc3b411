-- The globals of one plugin: its own copies of the library and of the names of `cru`, so that nothing that it does to them reaches another.
-- Takes: G (what is copied), library (what library.lua returned), install_names (puts the names of `cru` into globals), homes (source of a chunk ->
-- the globals that it was loaded with), metas (the metatables that all plugins share), own_metatable (of names.lua). Returns a function that makes a new table of globals.

local G, library, install_names, homes, metas, own_metatable = ...
local next, type, error, match, rawget = next, type, error, string.match, rawget
local getinfo, getupvalue, raw_getmetatable, raw_setmetatable = debug.getinfo, debug.getupvalue, debug.getmetatable, setmetatable

local function copy(t)
  local own = {}
  for key, value in next, t do own[key] = value end
  return own
end

-- Methods of strings are looked up here; one that the library has not is looked up in the `string` of the code that calls it.
local string_meta, methods = raw_getmetatable(""), copy(G.string)
local function environment_of(f)
  for n = 1, 255 do
    local name, value = getupvalue(f, n)
    if name == "_ENV" then return value end
    if not name then return nil end
  end
end
string_meta.__index = raw_setmetatable(methods, { __index = function(_, key)
  local caller = getinfo(2, "Sf")
  local env = caller and (environment_of(caller.func) or homes[caller.source])
  local own = type(env) == "table" and env.string
  return type(own) == "table" and rawget(own, key) or nil
end })

-- Shared metatables are shown as views: readable, not to be changed, and good for setmetatable.
local shared, real = {}, raw_setmetatable({}, { __mode = "k" })
for _, meta in next, metas do shared[meta] = true end
local function view(meta, own_string)
  local seen = {}
  for key, value in next, meta do seen[key] = type(value) == "table" and copy(value) or value end
  if meta == string_meta then seen.__index = own_string end
  local shown = raw_setmetatable({}, {
    __index = seen,
    __newindex = function() error("all plugins share this metatable: it cannot be changed", 2) end,
    __pairs = function() return next, copy(seen), nil end,
  })
  real[shown] = meta
  return shown
end

local function metatables(R, own_string)
  local views, get, set = {}, G.getmetatable, G.setmetatable
  local function seen(value, meta)
    if not shared[meta] then return own_metatable(value, meta) or meta end
    views[meta] = views[meta] or view(meta, own_string)
    return views[meta]
  end
  function R.getmetatable(value) return seen(value, get(value)) end
  function R.setmetatable(value, meta) return set(value, real[meta] or meta) end
  function R.debug.getmetatable(value) return seen(value, raw_getmetatable(value)) end
  local set_any = R.debug.setmetatable
  function R.debug.setmetatable(value, meta)
    if type(value) ~= "table" then error("debug.setmetatable works on tables only: all plugins share the metatable of a " .. type(value), 2) end
    return set_any(value, real[meta] or meta)
  end
end

-- What `debug` shows ends at the plugin's own functions.
local function inspection(R, debug)
  local function foreign(f, thread)
    local info = thread and getinfo(thread, f, "S") or not thread and getinfo(f, "S")
    if not info then return false end
    local home = homes[info.source]
    return info.what == "C" or match(info.source, "^=%[cru ") ~= nil or (home ~= nil and home ~= R)
  end
  local function forbid(name) error("debug." .. name .. " is not available for what does not belong to this plugin", 3) end
  for _, name in next, { "getupvalue", "setupvalue", "upvalueid" } do
    local original = debug[name]
    debug[name] = function(f, ...)
      if type(f) == "function" and foreign(f) then forbid(name) end
      return original(f, ...)
    end
  end
  local join = debug.upvaluejoin
  function debug.upvaluejoin(f, n, g, m)
    if type(f) == "function" and foreign(f) or type(g) == "function" and foreign(g) then forbid("upvaluejoin") end
    return join(f, n, g, m)
  end
  for _, name in next, { "getlocal", "setlocal" } do
    local original = debug[name]
    debug[name] = function(first, ...)
      if type(first) == "thread" then
        if type((...)) == "number" and foreign((...), first) then forbid(name) end
      elseif type(first) == "number" then  -- counted from here: one level more
        if foreign(first + 2) then forbid(name) end
        local variable, value = original(first + 1, ...)
        return variable, value
      end
      return original(first, ...)
    end
  end
  function debug.getregistry() forbid("getregistry") end
end

local standard = copy(G.package.loaded)
return function()
  local R, libraries = copy(G), {}
  R._G = R
  for name, value in next, G do
    if type(value) == "table" and standard[name] == value and name ~= "_G" then
      R[name] = copy(value)
      libraries[name] = R[name]
    end
  end
  libraries._G = R
  local package = R.package
  package.loaded, package.preload, package.searchers = libraries, {}, { nil, nil, G.package.searchers[3], G.package.searchers[4] }
  library.streams(R.io)
  library.code(R)
  library.modules(R, package)
  metatables(R, R.string)
  inspection(R, R.debug)
  install_names(R, package)
  return R
end
