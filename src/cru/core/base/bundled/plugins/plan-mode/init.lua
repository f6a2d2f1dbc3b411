-- plan-mode: /plan PROMPT makes the agent read and write a plan; /plan go carries it out.
-- That nothing is changed meanwhile is the business of the mode `plan`, not of this plugin. Settings: docs/bundled-plugins.md.

local defaults = {
  prompt = [[
You are planning. Only reading is possible: do not try to change anything.
Look at what you need, then answer with a written plan: the goal, what you found, and the steps as a list of todos (`- [ ] step`),
small enough to be checked one by one. Name files and risks. Ask if something is unclear.]],
  go = "Carry out this plan. Keep your todo list up to date, and mark each step [x] when it is done and checked.",
}
local KEY, USAGE = "plan-mode", "/plan [PROMPT] | /plan show | /plan go | /plan off"
local M, settings = {}, defaults
local before   -- the mode to go back to

function M.setup(given) settings = cru.check.settings(given, defaults) end

--- What is kept for this context: {planning, plan}.
local function kept()
  local found = cru.state.get(KEY)
  return type(found) == "table" and found or {}
end

local function enter()
  local session = cru.get_session()
  if session.mode ~= "plan" then before = session.mode end
  session.mode = "plan"
end

local function leave(state)
  local session = cru.get_session()
  if session.mode == "plan" then session.mode = before or "ask" end
  state.planning = false
  cru.state.set(KEY, state)
end

--- Planning survives the end of a run: the next one begins in the mode again.
-- @handler event="session:started"
function M.on_start()
  if not kept().planning then return nil end
  enter()
  cru.toast("plan-mode: still planning; /plan go starts the work, /plan off ends it")
end

--- Each prompt says that this is planning.
-- @handler event="message:received"
function M.on_prompt()
  if kept().planning then return { context = settings.prompt } end
end

--- The last reply is the plan.
-- @handler event="turn:complete"
function M.on_turn_complete(ctx, event)
  local state = kept()
  if not state.planning or event.cause ~= "done" or not event.response:match("%S") then return nil end
  state.plan = event.response
  cru.state.set(KEY, state)
end

local function go()
  local state = kept()
  if not state.plan then return { error = "there is no plan yet: /plan PROMPT makes one" } end
  leave(state)
  return { inject = settings.go .. "\n\n" .. state.plan }
end

local function off()
  local state = kept()
  if not state.planning then return { message = "this is no planning" } end
  leave(state)
  return { message = "planning is over; the mode is " .. cru.get_session().mode }
end

local function show() return { message = kept().plan or "there is no plan yet: /plan PROMPT makes one" } end

local WORDS = { show = show, go = go, off = off }

--- The command /plan.
function M.command(args)
  local input = (args and args.input or ""):match("^%s*(.-)%s*$")
  if WORDS[input] then return WORDS[input]() end
  enter()
  cru.state.set(KEY, { planning = true, plan = kept().plan })
  if input == "" then return { message = "planning: only reads are possible until /plan go or /plan off" } end
  return { inject = input }
end

M.commands = { plan = { desc = "Plan first, without changes: " .. USAGE, hint = "[PROMPT | show | go | off]", fn = M.command } }

return M
