-- Keeps an eye on the session: a pulse, a list of what went wrong, one line of status, and a last note at the end.

local parts = cru.emitter.new()
local shared = cru.emitter.global()
local beats, ticks = 0, 0

shared:on("pulse", function(n) beats = n end)
parts:on("tick", function()
  ticks = ticks + 1
  cru.log("info", "tick " .. ticks)
end)

local pulse = cru.service.define({
  name = "pulse",
  desc = "beats while the session is open",
  config = { every = { default = 0.005 } },
  start = function(config)
    local n = 0
    while true do
      n = n + 1
      shared:emit("pulse", n)
      cru.timer.sleep(config.every)
    end
  end,
  stop = function() cru.toast("the pulse stops") end,
  health = function() return beats > 0 end,
})

local ticking
local first = cru.on("tool:called", function() cru.toast("a tool runs") end)
cru.once("tool:called", function()
  cru.notify("tools are used", cru.log.levels.WARN)
  if cru.notify_once("be careful") and not cru.notify_once("be careful") then cru.off(first) end
end)

cru.on_session_start(function(session)
  cru.messages.show()
  cru.messages.toggle()
  cru.messages.hide()
  cru.messages.clear()
  pulse.fn()
  ticking = cru.schedule({ every = 0.005 }, function() parts:emit("tick") end)
  cru.set_status({ key = "monitor", text = "watching", progress = 0.5 })
  cru.statusline.set(nil, "pulse", "on")
  cru.publish("targets", { session.workspace })
end)

local function wait_for(enough)
  for _ = 1, 2000 do
    if enough() then return true end
    cru.timer.sleep(0.002)
  end
  return false
end

--- How the session does.
-- @tool name="how_is_it"
function how_is_it()
  wait_for(function() return beats > 2 and ticks > 1 end)
  cru.spawn(function() error("no such luck") end)
  wait_for(function() return #cru.errors.recent() > 0 end)
  local status = cru.service.status("pulse")
  cru.health.start("session")
  if status.running and status.healthy then cru.health.ok("the pulse beats") else cru.health.error("no pulse") end
  cru.health.info(#cru.service.list() .. " service")
  cru.health.warn(cru.errors.recent(1)[1].error:match("no such luck"), "try again")
  cru.health.error("only a test")
  local report, lines = cru.health.get_results(), {}
  for _, check in ipairs(report.checks) do table.insert(lines, check.level .. " " .. check.msg) end
  return report.name .. " " .. tostring(report.healthy) .. "\n" .. table.concat(lines, "\n")
end

cru.on("turn:complete", function()
  cru.toast("ticking " .. tostring(cru.schedule.cancel(ticking)) .. ", pulse " .. tostring(cru.service.stop("pulse")))
  cru.clear_status({ key = "monitor" })
  cru.statusline.clear(nil, "pulse")
end)

cru.on_session_end(function(info) cru.fs.write("end.txt", info.reason .. " " .. tostring(beats > 2)) end)
