-- auto-title: after the first answer the model is asked for a title of the conversation, beside everything else.
-- Settings stand in [plugins.auto-title] of config.toml; docs/bundled-plugins.md says what they mean.

local defaults = {
  words = 6,     -- at most, in the title
  wait = 3,      -- seconds for which the end of a run waits for a title that is on its way; 0: not at all
}
local KEY, LONGEST, EXCERPT = "auto-title", 60, 1500
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
  cru.publish("session_title", title)
end

--- @handler event="turn:complete"
function M.on_turn_complete(ctx, event) finished = event.cause == "done" end

--- Ask once a run, when a turn has ended well. Failing is no more than a line that -v shows.
-- @handler event="session:idle"
function M.on_idle(ctx)
  if asked or not finished or cru.state.get(KEY) then return nil end
  local prompt, answer = beginning(ctx.session.transcript)
  if not prompt then return nil end
  asked, waiting = true, true
  cru.spawn(function()
    local ok, result = pcall(ask, prompt, answer)
    if ok then found(result) else cru.log("info", "auto-title: no title: " .. tostring(result)) end
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
  asked = false
end

return M
