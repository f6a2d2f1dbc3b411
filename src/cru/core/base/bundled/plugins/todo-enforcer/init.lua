-- todo-enforcer: while todos are open the agent goes on, until they are done or a limit is reached.
-- Settings stand in [plugins.todo-enforcer] of config.toml; docs/bundled-plugins.md says what they mean.

local defaults = {
  countdown = 2,     -- seconds in which Ctrl-C stops it; nobody at a terminal: none
  max = 20,          -- continuations for one prompt of the user
  no_progress = 3,   -- reminders in a row with the same open todos
  questions = true,  -- leave the turn to the user when the reply ends with a question
  backoff = 5,       -- seconds more after a continuation that failed, doubled with each
  failures = 5,      -- failed continuations in a row
  evidence = true,   -- a todo is done only if something was done
  ask_after = 6,     -- rounds with tools after which a model without a list is asked for one, once; 0: never
}
local BACKOFF_MOST = 40
local M, settings = {}, defaults

local reminded, same, last = 0, 0, ""   -- since the user's last prompt
local stopped, compacted = false, false
local outcome = nil                     -- how it gave up, until the user's next prompt
local batches = 0                       -- rounds with tools since that prompt
local worked, claims = false, 0         -- whether a tool was used since that prompt; todos that were ticked without one
local LISTS = { update_todos = true, update_goals = true, update_reflection = true, call_user = true, recurse = true }
local CLAIM = "todos were ticked off or removed, but nothing was done in this turn"
local failed = 0                        -- continuations in a row that ended with an error

function M.setup(given)
  settings = cru.check.settings(given, defaults)
  cru.check.number(settings.countdown, "[plugins.todo-enforcer] countdown", { max = 15 })   -- a handler waits at most 60 s in all
end

--- The open todos as lines, and how many of all are done. The todo list comes before the reply: its word on a todo counts.
function M.open(todos)
  local seen, lines, done, count = {}, {}, 0, 0
  for _, todo in ipairs(todos) do
    if not seen[todo.text] then
      seen[todo.text], count = true, count + 1
      if todo.done then done = done + 1 else lines[#lines + 1] = "- [ ] " .. todo.text end
    end
  end
  return table.concat(lines, "\n"), done, count
end

--- Whether a reply ends with a question; closing marks and emphasis do not count.
function M.asks(response)
  local text = response:sub(-400):reverse():match("^[%s%*_\"')%]]*(.*)$"):reverse()
  return text:sub(-1) == "?" or text:sub(-#"？") == "？"
end

local function reminder(open, done, count)
  return ("Your todos are not done yet: %d of %d done. Go on with what remains, and mark each todo [x] when it is done:\n%s")
    :format(done, count, open)
end

local function wait()
  if failed > 0 then
    local pause = math.min(settings.backoff * 2 ^ (failed - 1), BACKOFF_MOST)
    cru.toast(("todo-enforcer: waits %g s after an error"):format(pause))
    cru.timer.sleep(pause)
  end
  if settings.countdown > 0 and cru.get_session().interactive then
    cru.toast(("todo-enforcer: goes on in %g s, Ctrl-C stops it"):format(settings.countdown))
    cru.timer.sleep(settings.countdown)
  end
end

--- The last line of a reply: its question.
local function question(response)
  return response:sub(-400):reverse():match("^%s*([^\n]*)"):reverse():match("^%s*(.*)$")
end

--- Stop reminding: the answer of this turn's end, and of each later one, while todos are open.
local function give_up(kind, why)
  outcome = { kind = kind, reason = "todo-enforcer: " .. why }
end

--- The outcome with what is open now, for an answer.
local function with_open(kind, reason, open)
  local items = {}
  for line in open:gmatch("[^\n]+") do items[#items + 1] = line:sub(#"- [ ] " + 1) end
  return { kind = kind, reason = reason, open = items }
end

local function ending(open) return { outcome = with_open(outcome.kind, outcome.reason, open) } end

--- A new prompt of the user: everything is counted anew.
-- @handler event="message:received"
function M.on_prompt(ctx, event)
  if ctx.is_continuation then return nil end
  reminded, same, last, stopped, outcome = 0, 0, "", false, nil
  worked, claims, batches = false, 0, 0
end

--- A task of several steps needs a list.
-- @handler event="tool:batch_completed"
function M.on_batch(ctx)
  batches = batches + 1
  if stopped or batches ~= settings.ask_after or #ctx.session.todos > 0 or cru.get_session().mode == "plan" then return nil end
  return { context = "[This task takes several steps. Write what is left to do as a todo list with update_todos, so that nothing is forgotten.]" }
end

--- @handler event="tool:completed" scope="tree"
function M.on_result(ctx, event)
  if not LISTS[event.name] then worked = true end
end

--- Whether a todo that is open in the one list is done, or missing, in the other.
function M.claims(before, after)
  local still = {}
  for text in ("\n" .. after):gmatch("\n%s*[-*+] %[ %] ([^\n]+)") do still[text:match("^%s*(.-)%s*$")] = true end
  for _, todo in ipairs(before) do
    if not todo.done and not still[todo.text] then return true end
  end
  return false
end

--- A todo is not ticked off, nor removed, before anything was done: once that is refused.
-- @handler event="tool:before_call" pattern="update_todos"
function M.on_update(ctx, event)
  if not settings.evidence or worked or stopped or not M.claims(ctx.session.todos, tostring(event.args.content or "")) then return nil end
  claims = claims + 1
  if claims == 1 then return { cancel = true, reason = CLAIM .. ": do the work first, then tick it off" } end
end

--- Go on while todos are open.
-- @handler event="turn:complete" priority=10 on_error="deny"
function M.on_turn_complete(ctx, event)
  if ctx.is_continuation then
    if event.cause == "error" then failed = failed + 1 elseif event.cause == "done" then failed = 0 end
  end
  if stopped or event.cause ~= "done" or event.queued > 0 or cru.get_session().mode == "plan" then return nil end
  local open, done, count = M.open(ctx.session.todos)
  if open == "" and (claims > 1 or last ~= "") and settings.evidence and not worked then
    if claims > 0 then
      return { outcome = { kind = "gave_up", reason = "todo-enforcer: " .. CLAIM } }
    end
    claims = 1
    return { inject = "[" .. CLAIM .. ". Do the work, or say what keeps you from it.]" }
  end
  if open == "" then
    if count > 0 then return { outcome = { kind = "done", evidence = { ("%d of %d todos are done"):format(done, count) } } } end
    return nil
  end
  if outcome then return ending(open) end
  if event.called_user or (settings.questions and M.asks(event.response)) then
    give_up("needs_person", "the agent asks: " .. question(event.response))
    local asked = ending(open)
    outcome = nil   -- an answer lets it go on
    return asked
  end
  same = open == last and same + 1 or 1
  last = open
  if failed >= settings.failures then
    give_up("failed", ("%d turns in a row failed"):format(failed))
  elseif reminded >= settings.max then
    give_up("out_of_budget", ("%d continuations, %d of %d todos done"):format(reminded, done, count))
  elseif same > settings.no_progress then
    give_up("gave_up", ("no progress: the same todos are open after %d reminders"):format(settings.no_progress))
  end
  if outcome then return ending(open) end
  reminded = reminded + 1
  wait()
  if stopped then return nil end
  return { inject = reminder(open, done, count), outcome = with_open("gave_up", nil, open) }   -- if a limit keeps it from going on
end

--- A summary may have lost the list: the next request gets it again.
-- @handler event="session:compacted"
function M.on_compacted() compacted = true end

--- @handler event="message:before_send" scope="main"
function M.on_request(ctx, event)
  if not compacted or stopped then return nil end
  compacted = false
  local open, done, count = M.open(ctx.session.todos)
  if open ~= "" then return { context = reminder(open, done, count) } end
end

--- /stop ends it until the user's next prompt.
-- @handler event="command:stop"
function M.on_stop() stopped = true end

return M
