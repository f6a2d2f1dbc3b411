local title = require("auto-title")

describe("auto-title", function()
  it("makes one clean line of what a model says", function()
    for said, wanted in pairs {
      ['"A day at sea."'] = "A day at sea", ["# A day at sea\nand more"] = "A day at sea", ["\n\n  **A day**  "] = "A day",
      ['The "new" parser.'] = 'The "new" parser', ["'A day'."] = "A day", ["  \n "] = "", [("ä"):rep(100)] = ("ä"):rep(60),
    } do
      assert.equal(wanted, title.clean(said))
    end
  end)

  it("asks after a turn that ended well, and keeps the answer", function()
    local asked, spawn, agent = 0, cru.spawn, cru.ask.agent
    cru.spawn = function(work) work() end
    cru.ask.agent = function()
      asked = asked + 1
      return { answer = function() return cru.ask.answer_other("A day at sea") end }
    end
    local ctx = { session = { transcript = { { role = "user", content = "hello" }, { role = "assistant", content = "hi" } } } }
    title.on_turn_complete({}, { cause = "error" })
    title.on_idle(ctx)
    assert.equal(0, asked)
    title.on_turn_complete({}, { cause = "done" })
    title.on_idle(ctx)
    title.on_idle(ctx)
    cru.spawn, cru.ask.agent = spawn, agent
    assert.deep_equal({ 1, "A day at sea" }, { asked, cru.state.get("auto-title") })
  end)
end)
