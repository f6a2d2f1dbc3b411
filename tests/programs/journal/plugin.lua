-- A journal: what was asked, per context; people and what is known of them, over all contexts; a page a session in its folder.

local function notes()
  local ok, folder = pcall(cru.paths.kiln)
  if ok then return folder end
  return cru.paths.state("journal"), folder
end

cru.on("message:received", function(ctx, event)
  local asked = cru.state.get("asked") or {}
  table.insert(asked, event.content)
  cru.state.set("asked", asked)
  cru.state.set("last", #asked)
end)

--- Remember something about somebody.
-- @tool name="remember"
-- @param who string
-- @param key string
-- @param value string
function remember(args)
  cru.storage.set(args.who, args.key, args.value)
  return args.who .. " " .. args.key .. " is " .. cru.storage.get(args.who, args.key)
end

--- Forget something about somebody.
-- @tool name="forget"
-- @param who string
-- @param key string
function forget(args)
  return cru.storage.delete(args.who, args.key) and "forgotten" or "never known"
end

--- Who is known to have this value?
-- @tool name="who"
-- @param key string
-- @param value string
function who(args)
  local lines = {}
  for _, one in ipairs(cru.storage.find(args.key, args.value)) do
    local count = 0
    for _ in pairs(cru.storage.list(one)) do count = count + 1 end
    table.insert(lines, one .. " (" .. count .. " facts)")
  end
  return table.concat(lines, ", ")
end

--- Close the page of this session.
-- @tool name="close_page"
function close_page()
  local folder, why = notes()
  local page = cru.paths.join(folder, "page.md")
  local asked = cru.state.get("asked")
  cru.fs.write(page, "asked " .. table.concat(asked, ", ") .. "\nin " .. cru.paths.workspace() .. "\n")
  cru.fs.write(cru.paths.join(cru.paths.session(), "page.txt"), page)
  cru.state.clear("asked")
  return "page " .. cru.state.get("last") .. " " .. tostring(cru.state.get("asked")) .. (why and ": " .. tostring(why) or "")
end
