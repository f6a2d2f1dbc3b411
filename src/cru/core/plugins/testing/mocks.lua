-- `test_mocks`: stand-ins for kiln, graph, http, fs, paths, session and sessions that read fixtures and write down every call.

local calls = {}               -- module -> method -> the arguments of each call

local function defaults()
  return {
    kiln = { notes = {}, outlinks = {}, backlinks = {}, neighbors = {} },
    graph = { notes = {}, outlinks = {}, backlinks = {}, neighbors = {} },
    http = { responses = {} },
    fs = { files = {}, dirs = {} },
    paths = { kiln = "/mock/kiln", workspace = "/mock/workspace", session = false, state = "/mock/state" },
    session = { temperature = 0.7, model = "mock-model", mode = "act" },
    sessions = { info = { kiln = "/mock/kiln" }, messages = {}, response_parts = {} },
  }
end

local function copy(value)
  if type(value) ~= "table" then return value end
  local made = {}
  for key, inner in pairs(value) do made[key] = copy(inner) end
  return made
end

-- `recorded(module, method, f)` is f, and its calls are written down.
local function recorded(module, method, f)
  return function(...)
    local of_module = calls[module] or {}
    local of_method = of_module[method] or {}
    calls[module], of_module[method] = of_module, of_method
    of_method[#of_method + 1] = { ... }
    return f(...)
  end
end
local function all_recorded(module, methods)
  for name, f in pairs(methods) do methods[name] = recorded(module, name, f) end
  return methods
end

-- Notes -------------------------------------------------------------------------------------------------------------------------
local function note_at(notes, path)
  for _, note in ipairs(notes) do
    if note.path == path then return copy(note) end
  end
end
local function found(notes, query, limit, score)
  local hits = {}
  for _, note in ipairs(notes) do
    local words = ((note.title or "") .. " " .. (note.content or "")):lower()
    if #hits < limit and words:find(query:lower(), 1, true) then hits[#hits + 1] = { path = note.path, score = score } end
  end
  return hits
end
local function finder(notes, score)
  return function(query, options) return found(notes, query, options and options.limit or 100, score) end
end
local function links(module, fixture, kind)
  return recorded(module, kind, function(path) return copy((fixture[kind] or {})[path] or {}) end)
end

local mocks = {}
function mocks.kiln(fixture)
  local mock = all_recorded("kiln", {
    list = function(limit) return copy({ table.unpack(fixture.notes, 1, math.min(limit or #fixture.notes, #fixture.notes)) }) end,
    get = function(path) return note_at(fixture.notes, path) end,
    search = finder(fixture.notes, 1.0),
  })
  for _, kind in ipairs { "outlinks", "backlinks", "neighbors" } do mock[kind] = links("kiln", fixture, kind) end
  return mock
end
function mocks.graph(fixture)
  local mock = all_recorded("graph", {
    get_note = function(path) return note_at(fixture.notes, path) end,
    search_semantic = finder(fixture.notes, 0.9),
  })
  for _, kind in ipairs { "outlinks", "backlinks", "neighbors" } do mock["get_" .. kind] = links("graph", fixture, kind) end
  return mock
end

-- The network and the disk ------------------------------------------------------------------------------------------------------
function mocks.http(fixture)
  local function reply(url)
    local said = fixture.responses[url] or {}
    return { status = said.status or 200, ok = said.ok ~= false, body = said.body or "", headers = copy(said.headers or {}) }
  end
  return all_recorded("http", {
    get = reply, post = reply, put = reply, delete = reply,
    request = function(options) return reply(options and options.url or "") end,
  })
end
local function plain(path)     -- however it is written: "./a//b", "a/b/" and "a/x/../b" are "a/b"; the folder itself is ""
  local parts, root = {}, tostring(path):sub(1, 1) == "/" and "/" or ""
  for part in tostring(path):gmatch("[^/]+") do
    if part == ".." and #parts > 0 and parts[#parts] ~= ".." then
      parts[#parts] = nil
    elseif part ~= "." then
      parts[#parts + 1] = part
    end
  end
  return root .. table.concat(parts, "/")
end
local function by_plain(map)
  local made = {}
  for path, value in pairs(map) do made[plain(path)] = copy(value) end
  return made
end

function mocks.fs(fixture)
  local files, dirs = by_plain(fixture.files), by_plain(fixture.dirs)
  local function below(path, inner)
    local prefix = (path == "" or path == "/") and path or path .. "/"
    return inner ~= path and inner:sub(1, #prefix) == prefix and inner:sub(#prefix + 1) or nil
  end
  local function is_dir(path)
    if path == "" or path == "/" or dirs[path] ~= nil then return true end
    for _, known in ipairs { files, dirs } do
      for inner in pairs(known) do if below(path, inner) then return true end end
    end
    return false
  end
  local function children(path)
    local names = {}
    for _, known in ipairs { files, dirs } do
      for inner in pairs(known) do
        local name = below(path, inner)
        if name and not name:find("/", 1, true) then names[#names + 1] = name end
      end
    end
    table.sort(names)
    return names
  end
  local function content(path, name)
    if files[path] == nil then error("File not found: " .. tostring(name), 4) end
    return files[path]
  end
  local function remove(path, name)
    if files[path] == nil and not is_dir(path) then error("File not found: " .. tostring(name), 4) end
    for _, known in ipairs { files, dirs } do
      for inner in pairs(copy(known)) do if inner == path or below(path, inner) then known[inner] = nil end end
    end
  end
  local methods = {
    read = content,
    write = function(path, _, text) files[path] = text end,
    append = function(path, _, text) files[path] = (files[path] or "") .. text end,
    exists = function(path) return files[path] ~= nil or is_dir(path) end,
    is_file = function(path) return files[path] ~= nil end,
    is_dir = function(path) return files[path] == nil and is_dir(path) end,
    mkdir = function(path) dirs[path] = true end,
    list = children,
    remove = remove,
    copy = function(path, name, target) files[plain(target)] = content(path, name) end,
    rename = function(path, name, target)
      files[plain(target)] = content(path, name)
      files[path] = nil
    end,
  }
  for name, method in pairs(methods) do
    methods[name] = function(path, ...) return (method(plain(path), path, ...)) end
  end
  return all_recorded("fs", methods)
end
function mocks.paths(fixture)
  local function place(name)
    return function()
      if not fixture[name] then error(name .. " path not configured", 2) end
      return fixture[name]
    end
  end
  local function join(...)
    local joined = ""
    for _, part in ipairs { ... } do
      if part:sub(1, 1) == "/" then
        joined = part
      elseif part ~= "" then
        joined = joined == "" and part or joined .. "/" .. part
      end
    end
    joined = joined:gsub("/+", "/")
    return #joined > 1 and joined:gsub("/$", "") or joined
  end
  return all_recorded("paths", {
    kiln = place("kiln"), workspace = place("workspace"), session = place("session"),
    state = function(plugin) return fixture.state .. "/" .. plugin end,
    join = function(...) return (join(...)) end,
  })
end

-- Sessions ----------------------------------------------------------------------------------------------------------------------
function mocks.session(fixture)
  local mock = {}
  for _, name in ipairs { "temperature", "max_tokens", "model", "mode", "thinking_budget" } do
    mock["get_" .. name] = function() return fixture[name] end
    mock["set_" .. name] = function(value) fixture[name] = value end
  end
  return all_recorded("session", mock)
end
function mocks.sessions(fixture)
  local made = 0
  return all_recorded("sessions", {
    create = function()
      made = made + 1
      return { id = "mock-session-" .. made }, nil
    end,
    get = function() return copy(fixture.info), nil end,
    messages = function() return copy(fixture.messages), nil end,
    configure_agent = function() return true, nil end,
    send_and_collect = function()
      local at = 0
      return function()
        at = at + 1
        return copy(fixture.response_parts[at])
      end
    end,
    end_session = function() return true, nil end,
  })
end

local KEPT = { fs = true, http = true, paths = true }  -- whole: no function of theirs stays what it was

test_mocks = {}
function test_mocks.setup(overrides)
  local fixtures = defaults()
  calls = {}
  for module, fields in pairs(overrides or {}) do
    for field, value in pairs(fixtures[module] and fields or {}) do fixtures[module][field] = value end
  end
  for module, make in pairs(mocks) do
    local mock, held = make(fixtures[module]), rawget(cru, module)
    if type(held) == "table" and KEPT[module] then   -- what a plugin holds as `local fs = cru.fs` is the stand-in, too
      for name in pairs(copy(held)) do held[name] = mock[name] end
      for name, method in pairs(mock) do held[name] = method end
      mock = held
    end
    cru[module] = mock
    if type(crucible) == "table" then crucible[module] = mock end
  end
  http, fs, paths = cru.http, cru.fs, cru.paths
end
function test_mocks.reset() test_mocks.setup() end
function test_mocks.get_calls(module, method) return (calls[module] or {})[method] or {} end
