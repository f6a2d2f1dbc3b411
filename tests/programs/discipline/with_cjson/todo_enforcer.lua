-- plugins/crucible-agents/hooks/todo_enforcer.lua

-- @handler event="turn:complete" priority=10
function todo_enforcer(ctx, event)
  -- Skip if this was an injected continuation
  if ctx.is_continuation then return nil end
  
  -- Check for incomplete todos in response
  local response = event.response or ""
  if response:match("%- %[ %]") then
    -- Found incomplete checkbox - continue working
    return {
      inject = [[
        You have incomplete tasks. Continue working.
        Mark each task [x] when complete.
        Do not stop until all tasks are done.
      ]]
    }
  end
  
  -- No todos, allow natural completion
  return nil
end
