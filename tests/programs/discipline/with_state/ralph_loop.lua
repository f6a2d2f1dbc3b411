-- plugins/crucible-agents/workflows/ralph_loop.lua

local STATE_KEY = "ralph_loop"

function M.start(prompt, opts)
  cru.state.set(STATE_KEY, {
    active = true,
    iteration = 0,
    max_iterations = opts.max_iterations or 100,
    completion_tag = opts.completion_tag or "DONE",
    prompt = prompt,
  })
end

--- Continue loop until completion
-- @handler event="turn:complete" priority=5
function M.on_turn_complete(ctx, event)
  local state = cru.state.get(STATE_KEY)
  if not state or not state.active then return nil end
  
  local response = event.response or ""
  
  -- Check for completion tag
  if response:match(state.completion_tag) then
    state.active = false
    cru.state.set(STATE_KEY, state)
    cru.toast("Ralph loop complete!")
    return nil
  end
  
  -- Check iteration limit
  state.iteration = state.iteration + 1
  if state.iteration >= state.max_iterations then
    state.active = false
    cru.state.set(STATE_KEY, state)
    cru.toast("Max iterations reached")
    return nil
  end
  
  cru.state.set(STATE_KEY, state)
  
  -- Continue working
  return {
    inject = {
      position = "user_prefix",
      content = cru.fmt([[
Continue. You have not indicated completion with '{tag}'.
Iteration {i}/{max}.
      ]], {
        tag = state.completion_tag,
        i = state.iteration,
        max = state.max_iterations,
      }),
    }
  }
end

return M
