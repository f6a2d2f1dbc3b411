-- A letter is written, read, and sent; never sent unread. The person's word "send" moves it, "stop" leaves it.

local read = false

cru.fsm.define({
  name = "letter",
  initial = "writing",
  states = {
    writing = { to = { "reading" }, instruction = "Write the letter." },
    reading = {
      to = { "sent" },
      exit = function() return read, "nobody has read it" end,
    },
    sent = { final = true },
  },
})

--- What the post office does.
-- @tool name="post"
-- @param action string begin, hand_over, read, send or stop
function post(args)
  if args.action == "begin" then
    cru.fsm.start("letter", "to Ada")
  elseif args.action == "hand_over" then
    cru.fsm.to("letter", "reading", "written")
  elseif args.action == "read" then
    read = true
  elseif args.action == "stop" then
    cru.fsm.stop("letter", "it rains")
  else
    local moved, why = cru.fsm.to("letter", "sent")
    if not moved then return why end
  end
  local one = cru.fsm.list()[1]
  return one.name .. " " .. one.status .. " " .. one.state .. " " .. #cru.fsm.status("letter").history
end
