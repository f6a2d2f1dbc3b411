-- context-monitor: says when the conversation fills the model's window, to the user and to the model, once a level.
-- Settings stand in [plugins.context-monitor] of config.toml; docs/bundled-plugins.md says what they mean.

local defaults = {
  first = 70,         -- percent of the window: the model is told that there is room left
  second = 85,        -- percent of the window: the model is told to finish what matters
  tell_model = true,
}
local KEY = "context-monitor"
local M, settings = {}, defaults

function M.setup(given)
  settings = cru.check.settings(given, defaults)
  if settings.first >= settings.second then error("[plugins.context-monitor] first must be less than second", 0) end
end

local NOTES = {
  "[The conversation fills %d %% of the context window. There is room left: work on as carefully as before, without hurry.]",
  "[The conversation fills %d %% of the context window. Finish what matters most first, and write down what must not be lost.]",
}

--- Tell the user of a level that was not told before; the note for the model, or nil.
function M.reached(percent)
  local level = percent >= settings.second and 2 or percent >= settings.first and 1 or 0
  local state = cru.state.get(KEY) or { told = 0 }
  if level <= state.told then return nil end
  local whole = math.floor(percent)
  cru.toast(("context-monitor: the conversation fills %d %% of the model's window"):format(whole))
  cru.state.set(KEY, { told = level })
  return settings.tell_model and NOTES[level]:format(whole) or nil
end

local function look()
  local usage = cru.context.usage(nil)
  if usage and usage.budget > 0 then return M.reached(usage.percent) end
end

--- Within a turn the note goes along with the results of tools.
-- @handler event="tool:batch_completed"
function M.on_tools()
  local note = look()
  if note then return { context = note } end
end

--- After a turn it waits for the next prompt, even if another run sends that.
-- @handler event="turn:complete"
function M.on_turn_complete()
  local note = look()
  if not note then return nil end
  local state = cru.state.get(KEY)
  state.note = note
  cru.state.set(KEY, state)
end

--- @handler event="message:received"
function M.on_prompt()
  local state = cru.state.get(KEY)
  if not state or not state.note then return nil end
  local note = state.note
  state.note = nil
  cru.state.set(KEY, state)
  return { context = note }
end

--- @handler event="context:overflow"
function M.on_overflow(ctx, event) M.reached(event.percent) end

--- @handler event="session:compacted"
function M.on_compacted() cru.state.clear(KEY) end

--- @handler event="context:cleared"
function M.on_cleared() cru.state.clear(KEY) end

return M
