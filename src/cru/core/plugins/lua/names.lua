-- The table `cru`: a table a family of names, whose members Python makes when they are first used.
-- Takes: P (pack.lua). Returns install(tree, callable, keyed, bare, resolve, encode, decode) -> a function that puts the names into globals,
-- and own_metatable: every plugin has tables of its own, but they share their metatables until one of them looks at its own.

local P = ...
local next, rawget, rawset, setmetatable, tostring, type = next, rawget, rawset, setmetatable, tostring, type

local shared = {}                          -- the metatables that plugins share
local used = setmetatable({}, { __mode = "k" })  -- table -> its names that were made or replaced
local function use(t, key)
  local keys = used[t]
  if not keys then
    keys = {}
    used[t] = keys
  end
  keys[key] = true
end

local function own_metatable(t, meta)      -- of a table of names; nil of any other
  if not shared[meta] then return nil end
  local own = {}
  for key, value in next, meta do own[key] = value end
  setmetatable(t, own)
  return own
end

local function family(path, from)          -- a function that makes a table of the names at this path
  local prefix, other = path == "" and "" or path .. ".", from.keyed[path]
  local names, families, meta = {}, {}, {}
  for _, child in next, from.tree[path] do
    if from.tree[prefix .. child] then
      families[child] = family(prefix .. child, from)
    else
      names[child] = prefix .. child
    end
  end
  local function waits(t, key)             -- the whole name of a member that is not made yet
    local full = names[key]
    return full and not (used[t] and used[t][key]) and full or nil
  end
  function meta.__index(t, key)
    local full = waits(t, key)
    if not full then
      if other then return other.get(key) end
      return nil
    end
    use(t, key)
    local value = from.resolve(full)
    rawset(t, key, value)
    return value
  end
  function meta.__newindex(t, key, value)
    if other and not waits(t, key) and not other.put(key, value) then return end
    if names[key] then use(t, key) end
    rawset(t, key, value)
  end
  function meta.__pairs(t)
    for key in next, names do
      if waits(t, key) then local _ = t[key] end
    end
    return next, t, nil
  end
  if from.callable[path] then
    function meta.__call(_, ...) return from.resolve(path)(...) end
  end
  if from.shares then shared[meta] = true end
  return function()
    local t = {}
    for child, make in next, families do t[child] = make() end
    return setmetatable(t, meta)
  end
end

local function install(tree, callable, keyed, bare, resolve, encode, decode)
  local known = {}                         -- functions that were made; every plugin gets the same ones
  local function resolved(name)
    local value = known[name]
    if value == nil then
      value = resolve(name)
      if type(value) == "function" then known[name] = value end
    end
    return value
  end
  local function maker(shares)
    return family("", { tree = tree, callable = callable, keyed = keyed, resolve = resolved, shares = shares })
  end
  local make = maker(false)                -- the first globals are the machine's: nothing of theirs is shared
  local make_shared
  return function(G, package)
    local cru = make()
    make_shared = make_shared or maker(true)
    make = make_shared
    local json = { encode = encode, decode = decode, null = P.null, array = P.array, empty_array = P.array({}) }
    cru.json = rawget(cru, "json") or json
    cru.json.null, cru.json.array = P.null, P.array
    if rawget(cru, "oq") then cru.oq.null = P.null end
    G.cru, G.crucible = cru, cru
    for _, name in next, bare do
      if rawget(cru, name) ~= nil then
        G[name] = cru[name]
      else
        G[name] = function(...) return cru[name](...) end
      end
    end
    package.preload.cjson = function() return json end
    package.preload.json = package.preload.cjson
    package.searchers[#package.searchers + 1] = function(name)  -- the last resort: require("graph") is cru.graph
      local table = rawget(cru, name)
      if type(table) == "table" then return function() return table end end
      return "no family of names 'cru." .. tostring(name) .. "'"
    end
  end
end

return install, own_metatable
