-- auto-title: after the first answer the model is asked for a title of the conversation, beside everything else.
-- Settings stand in [plugins.auto-title] of config.toml; docs/bundled-plugins.md says what they mean.

local defaults = {
  words = 6,     -- at most, in the title
  wait = 3,      -- seconds for which the end of a run waits for a title that is on its way; 0: not at all
}
local KEY, FAILED, LONGEST, EXCERPT, TRIES = "auto-title", "auto-title:failed", 60, 1500, 3
local M, settings = {}, defaults
local finished, asked, waiting = false, false, false

function M.setup(given)
  settings = cru.check.settings(given, defaults)
  cru.check.number(settings.wait, "[plugins.auto-title] wait", { max = 30 })
end

--- The first `most` characters of a text.
local function short(text, most)
  local at = utf8.len(text) and utf8.offset(text, most + 1)
  return at and text:sub(1, at - 1) or text
end

--- A model's words as a title: one line without quotes around it, "" if nothing is left.
function M.clean(text)
  local line = (text:match("[^\r\n]*%S[^\r\n]*") or ""):gsub("%c", " "):gsub("^[%s#]+", ""):gsub("[%s.]+$", "")
  local quote = line:match("^[\"'*`]+")
  if quote and line:sub(-#quote) == quote then line = line:sub(#quote + 1, -#quote - 1):gsub("[%s.]+$", "") end
  return short(line, LONGEST)
end

--- The first prompt and the first answer, nil before there is one.
local function beginning(transcript)
  local prompt
  for _, message in ipairs(transcript) do
    if message.role == "user" then prompt = prompt or message.content end
    if prompt and message.role == "assistant" and message.content ~= "" then return prompt, message.content end
  end
end

local function ask(prompt, answer)
  local text = ("Give a title of at most %d words, in the language of the conversation, for one that begins so.\nUser: %s\nAgent: %s")
    :format(settings.words, short(prompt, EXCERPT), short(answer, EXCERPT))
  local said = cru.ask.agent(cru.ask.batch():question(cru.ask.question("Title", text)))
  local title = M.clean(said:answer(1):other() or "")
  if title == "" then error("the model gave none", 0) end
  return title
end

local function found(title)
  cru.state.set(KEY, title)
  cru.state.clear(FAILED)
  cru.publish("session_title", title)
end

--- How often it failed in this conversation, and why last.
local function failed()
  local kept = cru.state.get(FAILED)
  if type(kept) == "table" and type(kept.tries) == "number" then return kept end
  return { tries = 0 }
end

local function fail(why)
  local tries = failed().tries + 1
  cru.state.set(FAILED, { tries = tries, why = why })
  cru.log("info", "auto-title: no title: " .. why)
  if tries >= TRIES then
    cru.toast(("auto-title: no title after %d tries, the last time because %s; /title TEXT gives one"):format(tries, why))
  end
end

--- @handler event="turn:complete"
function M.on_turn_complete(ctx, event) finished = event.cause == "done" end

--- Ask once a run, when a turn has ended well, and in three runs at most. Failing is a line that -v shows, the last time a notice.
-- @handler event="session:idle"
function M.on_idle(ctx)
  if asked or not finished or cru.state.get(KEY) or failed().tries >= TRIES then return nil end
  local prompt, answer = beginning(ctx.session.transcript)
  if not prompt then return nil end
  asked, waiting = true, true
  cru.spawn(function()
    local ok, result = pcall(ask, prompt, answer)
    if ok then found(result) else fail(tostring(result)) end
    waiting = false
  end)
end

--- A title that was found before is told to whoever shows it.
-- @handler event="session:started"
function M.on_start()
  local title = cru.state.get(KEY)
  if type(title) == "string" then cru.publish("session_title", title) end
end

--- A run with one prompt ends before the title is there: it waits a little.
-- @handler event="session:ended"
function M.on_end()
  local until_then = cru.timer.clock() + settings.wait
  while waiting and cru.timer.clock() < until_then do cru.timer.sleep(0.02) end
end

--- A new conversation gets a title of its own.
-- @handler event="context:cleared"
function M.on_cleared()
  cru.state.clear(KEY)
  cru.state.clear(FAILED)
  asked = false
end

--- /title shows the title, /title TEXT gives one.
function M.command(args)
  local given = M.clean(args.input or "")
  if given ~= "" then found(given) end
  local title, kept = cru.state.get(KEY), failed()
  if type(title) == "string" then return { message = title } end
  return { message = kept.why and ("no title yet; the last try failed: " .. kept.why) or "no title yet: it comes after the first turn" }
end

M.commands = { title = { desc = "Show the title of the conversation, or give one", hint = "[TEXT]", fn = M.command } }

return M
