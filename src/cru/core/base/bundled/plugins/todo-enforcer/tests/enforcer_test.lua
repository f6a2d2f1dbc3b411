local todos = require("todo-enforcer")

local function ctx(continuing, list) return { is_continuation = continuing, session = { todos = list } } end
local function done(response, more)
  local event = { cause = "done", response = response, queued = 0 }
  for key, value in pairs(more or {}) do event[key] = value end
  return event
end
local OPEN = { { text = "write it", done = false }, { text = "read it", done = true } }

describe("todo-enforcer", function()
  before_each(function()
    todos.setup {}
    todos.on_prompt(ctx(false, {}), {})
    todos.on_turn_complete(ctx(true, {}), done("fine"))   -- no failures behind it
  end)

  it("lists what remains and counts what is done", function()
    local said = todos.on_turn_complete(ctx(false, OPEN), done("…")).inject
    assert.truthy(said:find("1 of 2 done", 1, true))
    assert.truthy(said:find("- [ ] write it", 1, true))
    assert.falsy(said:find("read it", 1, true))
  end)

  it("counts a todo once, and believes the list", function()
    local lines, finished, count = todos.open { { text = "a", done = true }, { text = "a", done = false }, { text = "b", done = false } }
    assert.deep_equal({ "- [ ] b", 1, 2 }, { lines, finished, count })
  end)

  it("is silent when nothing is open", function()
    assert.is_nil(todos.on_turn_complete(ctx(false, {}), done("…")))
    local over = todos.on_turn_complete(ctx(false, { { text = "a", done = true } }), done("…"))
    assert.deep_equal({ outcome = { kind = "done", evidence = { "1 of 1 todos are done" } } }, over)
  end)

  it("leaves turns that did not end well, or have prompts behind them", function()
    for _, cause in ipairs { "error", "interrupted", "halted", "cancelled" } do
      assert.is_nil(todos.on_turn_complete(ctx(false, OPEN), done("…", { cause = cause })))
    end
    assert.is_nil(todos.on_turn_complete(ctx(false, OPEN), done("…", { queued = 1 })))
  end)

  it("takes a question for one, and a call of call_user", function()
    local function outcome(response, more) return todos.on_turn_complete(ctx(false, OPEN), done(response, more)).outcome end
    local asked = { kind = "needs_person", reason = "todo-enforcer: the agent asks: Which of the two?**", open = { "write it" } }
    assert.deep_equal(asked, outcome("I see.\nWhich of the two?**\n"))
    assert.equal("needs_person", outcome("Tell me the name", { called_user = true }).kind)
    assert.truthy(todos.on_turn_complete(ctx(true, OPEN), done("I assumed the first.")).inject)
    assert.truthy(todos.asks("どれ？ "))
    assert.falsy(todos.asks("Why? Because."))
    todos.setup { questions = false }
    assert.truthy(todos.on_turn_complete(ctx(false, OPEN), done("Which of the two?")))
  end)

  it("asks once for a list, if there is none after some rounds", function()
    todos.setup { ask_after = 2 }
    assert.is_nil(todos.on_batch(ctx(false, {})))
    assert.truthy(todos.on_batch(ctx(false, {})).context:find("update_todos", 1, true))
    assert.is_nil(todos.on_batch(ctx(false, {})))
    todos.on_prompt(ctx(false, {}), {})
    todos.on_batch(ctx(false, OPEN))
    assert.is_nil(todos.on_batch(ctx(false, OPEN)))
  end)

  it("knows a claim: an open todo that is ticked, or is gone", function()
    for after, is_claim in pairs {
      ["- [x] write it"] = true, [""] = true, ["- [ ] write it\n- [ ] more"] = false, ["* [ ]  write it "] = false, ["- [ ] write"] = true,
    } do
      assert.equal(is_claim, todos.claims(OPEN, after))
    end
    assert.falsy(todos.claims({}, "- [x] done at once"))
  end)

  it("does nothing in plan mode", function()
    local session = cru.get_session()
    session.mode = "plan"
    local answer = todos.on_turn_complete(ctx(false, OPEN), done("…"))
    session.mode = "ask"
    assert.is_nil(answer)
  end)

  it("stops without progress, until the next prompt", function()
    for _ = 1, 3 do assert.truthy(todos.on_turn_complete(ctx(true, OPEN), done("…"))) end
    local why = "todo-enforcer: no progress: the same todos are open after 3 reminders"
    local gave_up = { outcome = { kind = "gave_up", reason = why, open = { "write it" } } }
    for _ = 1, 2 do assert.deep_equal(gave_up, todos.on_turn_complete(ctx(true, OPEN), done("…"))) end   -- and says so at each end
    local ticked = { { text = "write it", done = true } }
    assert.truthy(todos.on_turn_complete(ctx(true, ticked), done("…")).inject:find("nothing was done", 1, true))
    todos.on_result({}, { name = "bash" })
    assert.equal("done", todos.on_turn_complete(ctx(true, ticked), done("…")).outcome.kind)
    todos.on_prompt(ctx(false, {}), {})
    assert.truthy(todos.on_turn_complete(ctx(false, OPEN), done("…")).inject)
  end)

  it("stops at its limit even if there is progress", function()
    todos.setup { max = 2 }
    for at = 1, 2 do assert.truthy(todos.on_turn_complete(ctx(true, { { text = "step " .. at, done = false } }), done("…"))) end
    local over = todos.on_turn_complete(ctx(true, { { text = "step 3", done = false } }), done("…"))
    assert.deep_equal({ "out_of_budget", { "step 3" } }, { over.outcome.kind, over.outcome.open })
  end)

  it("stops at /stop", function()
    todos.on_stop()
    assert.is_nil(todos.on_turn_complete(ctx(false, OPEN), done("…")))
    todos.on_prompt(ctx(true, {}), {})
    assert.is_nil(todos.on_turn_complete(ctx(true, OPEN), done("…")))
  end)

  it("waits longer with each continuation that failed, and gives up", function()
    local slept = {}
    local sleep = cru.timer.sleep
    cru.timer.sleep = function(seconds) slept[#slept + 1] = seconds end
    for _ = 1, 4 do
      todos.on_turn_complete(ctx(true, OPEN), done("", { cause = "error" }))
      todos.on_prompt(ctx(false, {}), {})
      assert.truthy(todos.on_turn_complete(ctx(false, OPEN), done("…")))
    end
    todos.on_turn_complete(ctx(true, OPEN), done("", { cause = "error" }))
    todos.on_prompt(ctx(false, {}), {})
    local answer = todos.on_turn_complete(ctx(false, OPEN), done("…"))
    cru.timer.sleep = sleep
    assert.deep_equal({ 5.0, 10.0, 20.0, 40.0 }, slept)
    assert.equal("failed", answer.outcome.kind)
  end)

  it("gives the list again after a compaction, once", function()
    assert.is_nil(todos.on_request(ctx(false, OPEN), {}))
    todos.on_compacted()
    assert.truthy(todos.on_request(ctx(false, OPEN), {}).context:find("write it", 1, true))
    assert.is_nil(todos.on_request(ctx(false, OPEN), {}))
  end)

  it("names a setting of the wrong type", function()
    assert.has_error(function() todos.setup { max = "many" } end, "[plugins.todo-enforcer] max: expected number, got string")
  end)
end)
