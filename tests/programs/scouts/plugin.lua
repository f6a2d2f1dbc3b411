-- Scouts: two agents look at the same time; the first answer counts, and the other one is called back.

--- Send scouts out.
-- @tool name="scouts"
-- @param question string What they are to find out
function scouts(args)
  local answer
  cru.background.spawn({
    agent = "explore",
    prompt = "fast: " .. args.question,
    on_complete = function(result) answer = result.output end,
  })
  local slow = cru.background.spawn({ agent = "explore", prompt = "slow: " .. args.question, on_complete = function() end })
  while not answer do cru.timer.sleep(0.01) end
  local called_back = cru.background.cancel(slow)
  return answer .. "; " .. #cru.background.list() .. " sent, " .. cru.background.get(slow).status .. " " .. tostring(called_back):lower()
end
