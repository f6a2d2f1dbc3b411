-- What each plugin has in the machine that all of them share: the globals of its files, the modules of its own folder `lua/`, and what
-- it put into package.loaded. Returns the functions that plugins.py calls; each takes the plugin's name first.

local type, next, rawget, rawequal, error, setmetatable, G = type, next, rawget, rawequal, error, setmetatable, _G
local gmatch, match, package, loadfile, require = string.gmatch, string.match, package, loadfile, require
local loaded, searchpath = package.loaded, package.searchpath

local standard, preload = {}, package.preload  -- there before any plugin; these names always mean the same
for name, value in next, loaded do standard[name] = value end
local scopes, owner = {}, {}               -- by plugin; whose an entry of package.loaded is

local function own_file(scope, name)
  if scope.path == "" or type(name) ~= "string" or standard[name] ~= nil or preload[name] ~= nil then return nil end
  return (searchpath(name, scope.path))
end

local function own_module(scope, name, file)
  local chunk, wrong = loadfile(file, "t", scope.globals)
  if not chunk then error("error loading module '" .. name .. "' from file '" .. file .. "':\n\t" .. wrong, 0) end
  local before, value = loaded[name], chunk(name, file)
  if not rawequal(loaded[name], before) then
    owner[name] = scope
    if value == nil then value = loaded[name] end
  end
  if value == nil then value = true end
  scope.own[name] = value
  return value, file
end

local function open(plugin, path)          -- path: where its own modules lie, "" if it has no folder
  local scope = { path = path, files = {}, own = {}, before = {}, globals = setmetatable({}, { __index = G }) }
  scope.index = { __index = scope.globals }
  for name, value in next, loaded do scope.before[name] = value end
  function scope.globals.require(name)
    if scope.own[name] ~= nil then return scope.own[name] end
    local file = own_file(scope, name)
    if file then return own_module(scope, name, file) end
    if name ~= nil and loaded[name] == nil then owner[name] = scope end
    return require(name)
  end
  scopes[plugin] = scope
end

local function opened(plugin)              -- its files have run, or failed: what they put into package.loaded is its own
  local scope = scopes[plugin]
  for name, value in next, loaded do
    if not rawequal(scope.before[name], value) then owner[name] = scope end
  end
  scope.before = {}
end

local function close(plugin)
  local scope = scopes[plugin]
  for name, whose in next, owner do
    if whose == scope then
      loaded[name] = standard[name]
      owner[name] = nil
    end
  end
  scopes[plugin] = nil
end

local function run(plugin, chunk, file, stem, env)
  local scope = scopes[plugin]
  setmetatable(env, scope.index)
  local result = chunk()
  scope.files[file] = { env = env, result = result }
  if result == nil and type(rawget(env, "M")) == "table" and next(env.M) ~= nil then result = env.M end
  if result ~= nil then loaded[stem] = result end
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

local function spec(plugin, file, keys)
  local result, said = scopes[plugin].files[file].result, {}
  if type(result) ~= "table" then return nil end
  for i = 1, #keys do said[keys[i]] = rawget(result, keys[i]) end
  return said
end

return { open = open, opened = opened, close = close, run = run, find = find, spec = spec }
