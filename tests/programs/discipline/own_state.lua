local STATE_FILE = ".crucible/plugin-state.json"

function cru.state.set(key, value)
  local all = cru.state._load()
  all[key] = value
  cru.fs.write(STATE_FILE, cru.json.encode(all))
end

function cru.state.get(key)
  local all = cru.state._load()
  return all[key]
end

function cru.state._load()
  local content = cru.fs.read(STATE_FILE)
  if content then return cru.json.decode(content) end
  return {}
end
