-- plugins/crucible-agents/workflows/ralph_loop.lua
local json = require("cjson")
local STATE_FILE = ".sisyphus/ralph-loop.json"

local function read_state()
  local content = crucible.fs.read(STATE_FILE)
  if content then return json.decode(content) end
  return nil
end

local function write_state(state)
  crucible.fs.write(STATE_FILE, json.encode(state))
end

-- Start ralph loop (called from slash command)
function M.start(prompt, opts)
  write_state({
    active = true,
    iteration = 0,
    max_iterations = opts.max_iterations or 100,
    completion_tag = opts.completion_tag or "DONE",
    prompt = prompt,
  })
end

-- @handler event="turn:complete" priority=5
function M.on_turn_complete(ctx, event)
  local state = read_state()
  if not state or not state.active then return nil end
  
  -- Check for completion tag
  local response = event.response or ""
  if response:match(state.completion_tag) then
    state.active = false
    write_state(state)
    crucible.toast("Ralph loop complete!")
    return nil
  end
  
  -- Check iteration limit
  state.iteration = state.iteration + 1
  if state.iteration >= state.max_iterations then
    state.active = false
    write_state(state)
    crucible.toast("Ralph loop: max iterations reached")
    return nil
  end
  
  write_state(state)
  
  -- Continue working
  return {
    inject = "Continue. You have not indicated completion with '" 
             .. state.completion_tag .. "'. Iteration " 
             .. state.iteration .. "/" .. state.max_iterations
  }
end

return M
