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
function mocks.fs(fixture)
  local files, dirs = copy(fixture.files), copy(fixture.dirs)
  local function children(path)
    local prefix, names = path:gsub("/*$", "") .. "/", {}
    for _, known in ipairs { files, dirs } do
      for one in pairs(known) do
        local name = one:sub(1, #prefix) == prefix and one:sub(#prefix + 1) or ""
        if name ~= "" and not name:find("/", 1, true) then names[#names + 1] = name end
      end
    end
    table.sort(names)
    return names
  end
  return all_recorded("fs", {
    read = function(path)
      if files[path] == nil then error("File not found: " .. tostring(path), 2) end
      return files[path]
    end,
    write = function(path, content) files[path] = content end,
    exists = function(path) return files[path] ~= nil or dirs[path] ~= nil end,
    mkdir = function(path) dirs[path] = true end,
    list = children,
  })
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

test_mocks = {}
function test_mocks.setup(overrides)
  local fixtures = defaults()
  calls = {}
  for module, fields in pairs(overrides or {}) do
    for field, value in pairs(fixtures[module] and fields or {}) do fixtures[module][field] = value end
  end
  for module, make in pairs(mocks) do
    local mock = make(fixtures[module])
    cru[module] = mock
    if type(crucible) == "table" then crucible[module] = mock end
  end
  http, fs, paths = cru.http, cru.fs, cru.paths
end
function test_mocks.reset() test_mocks.setup() end
function test_mocks.get_calls(module, method) return (calls[module] or {})[method] or {} end
