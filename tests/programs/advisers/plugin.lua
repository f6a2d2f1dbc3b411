-- Advisers: a question is talked over with two agents; the second one starts from what the first had heard, without its answer.

local function answer_of(id, question)
  local said = {}
  for part in assert(cru.sessions.send_and_collect(id, question)) do
    if part.type == "text" then said[#said + 1] = part.content end
  end
  return table.concat(said, " ")
end

local function bold_answer_of(id, question)
  local next_event = cru.sessions.subscribe(id)
  assert(cru.sessions.send_message(id, question .. " Be bold."))
  local event
  repeat event = next_event() until event.type == "message_complete"
  assert(cru.sessions.unsubscribe(id))
  local task = cru.sessions.collect_subagents({ id }, 10)[1]
  assert(task.output == event.data.full_response)
  return task.output
end

--- Talk a question over.
-- @tool name="consult"
-- @param question string What it is about
function consult(args)
  local adviser = cru.sessions.create({ agent_card = "plan", type = "adviser" })
  cru.sessions.configure_agent(adviser.id, { temperature = 0 })
  cru.sessions.inject(adviser.id, "user", "We build a boat.")
  local careful = answer_of(adviser.id, args.question)
  local other = cru.sessions.fork(adviser.id)
  while cru.sessions.can_undo(other.id) do cru.sessions.undo(other.id) end
  local undone = cru.sessions.undo_history(other.id)
  local bold = bold_answer_of(other.id, args.question)

  cru.sessions.pause(adviser.id)
  local taken, why = cru.sessions.send_message(adviser.id, "And now?")
  assert(not taken and why:find("paused"))
  cru.sessions.resume(adviser.id)
  local was_running = cru.sessions.cancel(adviser.id)
  cru.sessions.end_session(other.id)

  local verdict = cru.sessions.complete(nil, { prompt = "Which? " .. careful .. " " .. bold })
  return table.concat({
    verdict, cru.sessions.undo_depth(adviser.id) .. " turn", #cru.sessions.messages(other.id) .. " messages",
    cru.sessions.cache_stats(adviser.id).requests .. " request", cru.sessions.get(other.id).state, #cru.sessions.list() .. " sessions",
    tostring(was_running), #undone .. " undone",
  }, "; ")
end
