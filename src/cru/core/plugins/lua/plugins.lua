-- What each plugin has in the machine that all of them share: its globals, the modules of its own folder `lua/`, and the modules that it
-- has for others. Takes builtins of boot.lua: new_globals (makes globals for a plugin), environment (globals for one file of several) and compile.
-- Returns the functions that plugins.py calls; each takes the plugin's name first.

local new_globals, environment, compile = ...
local error, type, next, pcall, rawget, rawset = error, type, next, pcall, rawget, rawset
local gmatch, match, package = string.gmatch, string.match, package
local modules, searchpath = package.loaded, package.searchpath

local standard = {}                        -- there before any plugin; these names always mean the same
for name, value in next, modules do standard[name] = value end
local scopes, owner = {}, {}               -- by plugin; whose one of `modules` is

local function offer(scope, name, value)
  modules[name], owner[name] = value, scope
end

local function open(plugin, path)          -- path: where its own modules lie, "" if it has no folder
  local globals = new_globals()[1]
  local package, require = globals.package, globals.require
  local loaded, preload = package.loaded, package.preload
  local scope = { globals = globals, files = {}, loaded = loaded, required = {} }
  for name in next, loaded do scope.required[name] = true end
  if path ~= "" then package.path = path .. ";" .. package.path end
  local function offered(name)             -- by a plugin, and not hidden by a module of its own
    if owner[name] == nil or loaded[name] ~= nil or preload[name] ~= nil then return nil end
    return (path == "" or not searchpath(name, path)) and modules[name] or nil
  end
  function globals.require(name)
    local value = offered(name)
    if value ~= nil then return value end
    scope.required[name] = true
    return require(name)
  end
  scopes[plugin] = scope
  return scope
end

local function publish(plugin)              -- its files have run, or failed: what they put into package.loaded is for all
  local scope = scopes[plugin] or { loaded = {} }
  for name, value in next, scope.loaded do
    if not scope.required[name] then offer(scope, name, value) end
  end
end

local function close(plugin)
  local scope = scopes[plugin]
  for name, whose in next, owner do
    if whose == scope then
      modules[name] = standard[name]
      owner[name] = nil
    end
  end
  scopes[plugin] = nil
end

-- Run one file; path: as above; names: its names for `require`, with a `;` between them; alone: it is the plugin's only file, so that its globals are the plugin's; module: give
-- it a table `M`. Returns true and whether the file returned a table, or false and why it cannot be compiled.
local function run(plugin, path, file, names, source, alone, module)
  local scope = scopes[plugin] or open(plugin, path)
  local env = alone and scope.globals or environment({}, scope.globals)[1]
  if module then rawset(env, "M", {}) end
  local compiled, chunk = pcall(compile, source, "@" .. file, env)
  if not compiled then return false, chunk end
  local result = chunk()
  scope.files[file] = { env = env, result = result }
  if result == nil and type(rawget(env, "M")) == "table" and next(env.M) ~= nil then result = env.M end
  if result ~= nil then
    for name in gmatch(names, "[^;]+") do offer(scope, name, result) end
  end
  publish(plugin)
  return true, type(scope.files[file].result) == "table"
end

local function preload(plugin, path, name, source, file)  -- a module of its own that no file holds in Lua; as `run`
  local scope = scopes[plugin] or open(plugin, path)
  local compiled, chunk = pcall(compile, source, "@" .. file, scope.globals)
  if compiled then scope.globals.package.preload[name] = chunk end
  return compiled, not compiled and chunk or nil
end

local function include(plugin, file, source)  -- run another file with the plugin's globals
  local compiled, chunk = pcall(compile, source, "@" .. file, scopes[plugin].globals)
  if not compiled then error(chunk, 0) end
  return chunk()
end

local function find(plugin, file, path)    -- the function that an annotation stands above
  local it = scopes[plugin].files[file]
  local value = it.env
  for part in gmatch(path, "[^.:]+") do value = type(value) == "table" and value[part] or nil end
  if value ~= nil then return value end
  local rest = match(path, "^[^.:]+[.:](.+)$") or path
  value = it.result
  for part in gmatch(rest, "[^.:]+") do value = type(value) == "table" and value[part] or nil end
  return value
end

local function spec(plugin, file, keys)    -- of the table that a file returned: the values of these keys, and the kinds of all by name
  local result, values, kinds = scopes[plugin].files[file].result, {}, {}
  for i = 1, #keys do values[keys[i]] = rawget(result, keys[i]) end
  for key, value in next, result do
    if type(key) == "string" then kinds[key] = type(value) end
  end
  return values, kinds
end

return { publish = publish, close = close, run = run, preload = preload, include = include, find = find, spec = spec }
