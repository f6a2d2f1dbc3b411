-- ralph-loop: /ralph PROMPT keeps the agent at one task until it says that the task is complete.
-- Settings stand in [plugins.ralph-loop] of config.toml; docs/bundled-plugins.md says what they mean.

local defaults = {
  tag = "<promise>DONE</promise>",  -- what the agent says when the task is complete; plain text
  max = 100,         -- turns of one loop
  countdown = 2,     -- seconds in which Ctrl-C pauses it; nobody at a terminal: none
  no_progress = 3,   -- ends when a reply was repeated so often without a new tool result
  strict = true,     -- a tag in a code block or a quotation does not count
  evidence = true,   -- the tag counts only if something was done
  backoff = 5,       -- seconds before it goes on after a turn that failed, doubled with each
  failures = 5,      -- failed turns in a row
  keep_hours = 24,   -- a loop that an older run left behind is cleared after that time
}
local KEY, BACKOFF_MOST, AFTER_INTERRUPT = "ralph-loop", 40, 3
local OPTIONS = { "max", "tag" }
local LISTS = { update_todos = true, update_goals = true, update_reflection = true, call_user = true, recurse = true }
local USAGE = "/ralph PROMPT [--max N] [--tag TEXT] | /ralph status | /ralph stop"
local M, settings = {}, defaults
local interrupted, counting, compacted = nil, false, false
local ended = nil      -- how a loop ended otherwise than done, since the user's last prompt
local looked = false   -- whether what an older run left was looked at

function M.setup(given)
  settings = cru.check.settings(given, defaults)
  looked = false
  cru.check.number(settings.countdown, "[plugins.ralph-loop] countdown", { max = 15 })   -- a handler waits at most 60 s in all
end

local function instruction(loop) return ("When the task is complete and you have checked it, say %s."):format(loop.tag) end

local function plain(text) return (text:gsub("%p", "%%%0")) end

--- Words that make a promise none in its sentence: "I will say it when", "not yet".
local DOUBTS = {
  "not", "never", "cannot", "until", "unless", "before", "when", "once", "if", "would", "should", "will", "shall",
}

--- A reply without fenced code, quoted lines, code spans, the instruction, and the tag in quotation marks.
local function own_words(reply, loop)
  local kept, fence = {}, nil
  for line in (reply .. "\n"):gmatch("(.-)\n") do
    local mark = line:match("^%s*(```+)") or line:match("^%s*(~~~+)")
    if fence then
      if mark and mark:sub(1, #fence) == fence and line:match("^%s*[`~]+%s*$") then fence = nil end
    elseif mark then
      fence = mark
    elseif not line:match("^%s*>") then
      kept[#kept + 1] = line
    end
  end
  local text = table.concat(kept, "\n"):gsub(plain(instruction(loop)), "")
  if not loop.tag:find("`", 1, true) then text = text:gsub("`[^`\n]*`", "") end
  for _, quote in ipairs { '"', "'" } do text = text:gsub(quote .. plain(loop.tag) .. quote, "") end
  return (text:gsub("“" .. plain(loop.tag) .. "”", ""))
end

--- Whether what stands before the tag in its sentence denies it, or puts it off.
local function is_doubted(before)
  local sentence = before:match("[^%.!%?\n]*$"):lower():gsub("’", "'")
  for word in sentence:gmatch("[%a']+") do
    if word:sub(-3) == "n't" then return true end
    for _, doubt in ipairs(DOUBTS) do
      if word == doubt then return true end
    end
  end
  return false
end

--- Whether a reply says the tag. With `strict` it does so in words of its own, in a sentence that neither denies it nor puts it off.
function M.complete(reply, loop)
  if not settings.strict then return reply:find(loop.tag, 1, true) ~= nil end
  local text = own_words(reply, loop)
  local first, last = text:find(loop.tag, 1, true)
  while first do
    if not is_doubted(text:sub(1, first - 1)) then return true end
    first, last = text:find(loop.tag, last + 1, true)
  end
  return false
end

--- The loop that runs in this context, or nil; one that was damaged is cleared.
function M.loop()
  local loop = cru.state.get(KEY)
  if loop == nil then return nil end
  local whole = type(loop) == "table" and type(loop.prompt) == "string" and type(loop.tag) == "string"
    and type(loop.max) == "number" and type(loop.iteration) == "number" and type(loop.at) == "number"
    and type(loop.failed) == "number"
  if whole then return loop end
  cru.state.clear(KEY)
  cru.toast("ralph-loop: what was kept of a loop is damaged; it is cleared")
end

local function keep(loop)
  loop.at = os.time()
  cru.state.set(KEY, loop)
end

local function finish(loop, why)
  cru.state.clear(KEY)
  cru.toast(("ralph-loop: %s after %d of %d turns"):format(why, loop.iteration, loop.max))
end

--- The end of the loop as the answer of a turn's end.
local function ending(loop, kind, why, evidence)
  cru.state.clear(KEY)
  local reason = ("ralph-loop: %s after %d of %d turns"):format(why, loop.iteration, loop.max)
  local open = kind ~= "done" and { loop.prompt } or {}
  if kind ~= "done" then ended = { kind = kind, reason = reason, open = open } end   -- said again at each end until the next prompt
  return { outcome = { kind = kind, reason = reason, open = open, evidence = evidence } }
end

--- A new prompt of the user: what ended before it is over.
-- @handler event="message:received"
function M.on_prompt(ctx)
  if not ctx.is_continuation then ended = nil end
end

--- Start a loop; the prompt that begins it, for `return {inject = …}`. opts: max, tag.
function M.start(prompt, opts)
  cru.check.string(prompt, "prompt")
  opts = opts or {}
  local loop = {
    prompt = prompt,
    tag = cru.check.string(opts.tag, "tag", { optional = true }) or settings.tag,
    max = cru.check.number(opts.max, "max", { optional = true, min = 1 }) or settings.max,
    iteration = 0, failed = 0,
  }
  if loop.tag == "" then error("tag: must not be empty", 2) end
  interrupted, counting, compacted, looked = nil, false, false, true
  keep(loop)
  return prompt .. "\n\n" .. instruction(loop)
end

--- Seconds before the loop goes on.
local function wait(loop)
  if loop.failed > 0 then
    local pause = math.min(settings.backoff * 2 ^ (loop.failed - 1), BACKOFF_MOST)
    cru.toast(("ralph-loop: waits %g s after an error"):format(pause))
    cru.timer.sleep(pause)
  end
  if settings.countdown > 0 and cru.get_session().interactive then
    cru.toast(("ralph-loop: goes on in %g s, Ctrl-C pauses it"):format(settings.countdown))
    cru.timer.sleep(settings.countdown)
  end
end

local function how_to_go_on(loop)
  return ("%d of %d turns are done: your next prompt goes on with it, /ralph stop ends it"):format(loop.iteration, loop.max)
end

--- A turn that did not end well: the loop pauses, or ends after too many.
local function broken(loop, cause)
  if cause == "error" then loop.failed = loop.failed + 1 else interrupted = cru.timer.clock() end
  if loop.failed >= settings.failures then return finish(loop, ("stopped: %d turns in a row failed"):format(loop.failed)) end
  keep(loop)
  cru.toast("ralph-loop: paused, " .. how_to_go_on(loop))
end

--- Go on until the tag is said.
-- @handler event="turn:complete" priority=5 on_error="deny"
function M.on_turn_complete(ctx, event)
  local loop = M.loop()
  if not loop then return ended and { outcome = ended } or nil end
  if event.cause ~= "done" then return broken(loop, event.cause) end
  local fresh = interrupted and cru.timer.clock() - interrupted < AFTER_INTERRUPT
  if fresh and ctx.is_continuation then return nil end   -- a prompt of the user goes on at once
  interrupted = nil
  loop.iteration = loop.iteration + 1
  local is_complete = M.complete(event.response, loop)
  if is_complete and settings.evidence and not loop.worked then
    if loop.claimed then return ending(loop, "gave_up", "the agent said twice that it is done, and did nothing") end
    loop.claimed, is_complete = true, false
    if event.queued == 0 then
      keep(loop)
      return { inject = ("[You said %s, but nothing was done yet. Do the work, check it, then say it again.]"):format(loop.tag) }
    end
  end
  if is_complete then return ending(loop, "done", "complete", { "the agent said " .. loop.tag }) end
  if loop.iteration >= loop.max then return ending(loop, "out_of_budget", "the limit is reached") end
  if event.no_progress >= settings.no_progress then return ending(loop, "gave_up", "no progress") end
  if ctx.is_continuation then loop.failed = 0 end
  keep(loop)
  if event.queued > 0 then return nil end
  if event.called_user then
    return { outcome = { kind = "needs_person", reason = "ralph-loop: the agent asks: " .. event.response, open = { loop.prompt } } }
  end
  counting = true
  wait(loop)
  counting = false
  if not M.loop() then return nil end
  return {
    inject = ("Go on: the task is not complete. %s Turn %d of %d."):format(instruction(loop), loop.iteration + 1, loop.max),
    outcome = { kind = "gave_up", open = { loop.prompt } },   -- if a limit keeps it from going on
  }
end

--- Something was done in the loop.
-- @handler event="tool:completed" scope="tree"
function M.on_result(ctx, event)
  if LISTS[event.name] then return nil end
  local loop = M.loop()
  if loop and not loop.worked then
    loop.worked = true
    keep(loop)
  end
end

--- Ctrl-C in the countdown: say what becomes of the loop.
-- @handler event="session:idle"
function M.on_idle()
  local loop = counting and M.loop()
  counting = false
  if not loop then return nil end
  interrupted = cru.timer.clock()
  cru.toast("ralph-loop: paused, " .. how_to_go_on(loop))
end

--- A summary may have lost the task: the next request gets it again.
-- @handler event="session:compacted"
function M.on_compacted() compacted = true end

--- @handler event="message:before_send" scope="main"
function M.on_request()
  local loop = compacted and M.loop()
  compacted = false
  if loop then return { context = ("Your task is still this:\n%s\n\n%s"):format(loop.prompt, instruction(loop)) } end
end

--- A loop of an older run goes on with the first prompt of this one, unless it is too old. Commands that only look say nothing of it:
--- it may be at work in another process.
-- @handler event="leg:started"
function M.on_leg()
  if looked then return nil end
  looked = true
  local loop = M.loop()
  if not loop then return nil end
  if os.time() - loop.at > settings.keep_hours * 3600 then return finish(loop, "a loop was left behind; it is cleared") end
  cru.toast(("ralph-loop: a loop is under way and goes on, %d of %d turns are done; /ralph stop ends it"):format(loop.iteration, loop.max))
end

local function stop()
  local loop = M.loop()
  if loop then finish(loop, "stopped") end
  return loop
end

--- @handler event="command:stop"
function M.on_stop() stop() end

--- @handler event="context:clearing"
function M.on_clear() stop() end

--- The option that an unknown one may be meant as.
local function closest(name)
  for _, known in ipairs(OPTIONS) do
    if known:sub(1, 1) == name:sub(1, 1):lower() then return ("did you mean --%s?"):format(known) end
  end
  return "there are --" .. table.concat(OPTIONS, " and --")
end

--- A value, in quotes or not, at the beginning of a text: the value, and where it ends; nil if there is none.
local function value_of(text, from)
  for _, shape in ipairs { '^"([^"]+)"()', "^'([^']+)'()", "^([^%s\"']%S*)()" } do
    local value, after = text:match(shape, from)
    if value and (text:sub(after, after) == "" or text:match("^%s", after)) then return value, after - 1 end
  end
end

--- What stands behind /ralph: the prompt and its options, or nil and what is wrong. Options stand anywhere, as `--max 3` or `--max=3`;
--- a `--` before the prompt ends them.
function M.parse(text)
  local opts, kept, at = {}, {}, 1
  while true do
    local first, last, word = text:find("(%S+)", at)
    if not first then break end
    if word == "--" and #kept == 0 then
      kept[1] = text:sub(last + 1)
      break
    end
    local dashes, name, equals = word:match("^(%-%-?)(%a[%w_-]*)(=?)")
    local known = name == "max" or name == "tag"
    if dashes == "--" or (dashes and known) then
      local option = dashes .. name
      if dashes == "-" or not known then return nil, ("%s is unknown; %s (`--` before the prompt ends the options)"):format(option, closest(name)) end
      local from = first + #option
      from = equals == "=" and from + 1 or text:match("^%s+()", from) or from
      local value, ends = value_of(text, from)
      if not value or (equals == "" and value:match("^%-%-%a")) then return nil, option .. " needs a value" end
      opts[name], last = value, ends
    else
      kept[#kept + 1] = text:sub(at, last)
    end
    at = last + 1
  end
  return table.concat(kept):match("^%s*(.-)%s*$"), opts
end

local function status()
  local loop = M.loop()
  if not loop then return { message = "no loop is under way" } end
  return { message = ("%s\nuntil it says %s; %s"):format(loop.prompt, loop.tag, how_to_go_on(loop)) }
end

--- The command /ralph.
function M.command(args)
  local input = args and args.input or ""
  local prompt, opts = M.parse(input)
  if not prompt then return { error = ("/ralph: %s; usage: %s"):format(opts, USAGE) } end
  if prompt == "status" then return status() end
  if prompt == "stop" then return { message = stop() and "the loop is stopped" or "no loop is under way" } end
  if prompt == "" then return { error = "usage: " .. USAGE } end
  if opts.max then
    local most = math.tointeger(tonumber(opts.max))
    if not most or most < 1 then return { error = "--max: a whole number from 1, not " .. opts.max } end
    opts.max = most
  end
  return { inject = M.start(prompt, opts) }
end

M.commands = { ralph = { desc = "Keep at a task until it is complete", hint = "PROMPT [--max N] [--tag TEXT]", fn = M.command } }

return M
