-- Watches over what the agent may do, and over what its context holds. [plugins.guard] allowed = "make" is what runs unasked.

local own = cru.config["guard"]
local strict, tidy = false, false

cru.options({
  type = "group",
  args = {
    strict = {
      type = "toggle",
      name = "Refuse what is not known",
      get = function() return strict end,
      set = function(_, value) strict = value end,
    },
  },
})

cru.modes.careful = {
  description = "nothing is thrown away",
  permissions = { default = "ask", allow = { "survey" }, deny = { "bash:rm*" } },
}

cru.on_session_start(function(session)
  session.mode = "careful"
  cru.defaults.temperature = cru.defaults.temperature or 0.25
  cru.config.set({ guard_budget = 500 })
  cru.tools.set_active(nil, { "bash", "survey", "read" })
  cru.context.attach(nil, "The guard is on: " .. cru.modes.careful.description .. ".", { key = "guard" })
end)

cru.permissions.on_request(function(request)
  if request.args.command:sub(1, #own.allowed) == own.allowed then return { allow = true } end
  if strict then return { deny = true, reason = "the guard does not know `" .. request.args.command .. "`" } end
end, { pattern = "bash" })

--- What is there: tools, files, room.
-- @tool name="survey"
function survey()
  local first = cru.tools.call("read", { file_path = "one.txt" })
  local rest = cru.tools.batch({ { tool = "read", args = { file_path = "two.txt" } }, { tool = "read", args = { file_path = "no" } } })
  local known = {}
  for _, tool in ipairs(cru.tools.list()) do known[tool.name] = true end
  local usage = cru.context.usage(nil)
  local messages = cru.context.messages(nil)
  return table.concat({
    first:match("%a+") .. " " .. rest[1].result:match("%a+") .. " " .. type(rest[2].err),
    "active " .. table.concat(cru.tools.get_active(nil), " ") .. ", of " .. (known.write and "more" or "no more"),
    "room " .. tostring(usage.messages == #messages) .. " " .. cru.context.estimate_tokens(messages[1].content),
    "budget " .. cru.config.get("guard_budget"),
    "mode " .. cru.get_session().mode,
  }, "\n")
end

cru.on("message:received", function(_, event) tidy = event.content:find("tidy", 1, true) ~= nil end)

cru.on("session:idle", function()
  if not tidy then return nil end
  local removed = cru.context.remove(nil, { type = "first", n = 1 })
  cru.toast("removed " .. removed .. ", compacted " .. tostring(cru.context.compact(nil)))
end)
