-- plugins/crucible-agents/hooks/todo_enforcer.lua

--- Enforce todo completion
-- @handler event="turn:complete" priority=10
function todo_enforcer(ctx, event)
  -- Skip if continuation
  if ctx.is_continuation then return nil end
  
  -- Check for incomplete todos
  local response = event.response or ""
  if response:match("%- %[ %]") then
    return {
      inject = {
        position = "user_prefix",
        content = cru.fmt([[
<context>
You have incomplete tasks. Continue working.
Mark each task [x] when complete.
</context>
        ]], {}),
      }
    }
  end
  
  return nil  -- Pass through
end
