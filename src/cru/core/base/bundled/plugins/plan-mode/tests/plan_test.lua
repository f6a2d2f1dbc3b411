local plan = require("plan-mode")

local function complete(response, cause) return plan.on_turn_complete({}, { cause = cause or "done", response = response }) end

describe("plan-mode", function()
  before_each(function()
    plan.setup {}
    plan.command { input = "off" }
    cru.state.clear("plan-mode")
    cru.get_session().mode = "auto"
  end)

  it("plans, shows the plan, and goes back to the mode before", function()
    assert.equal("port the parser", plan.command({ input = "port the parser" }).inject)
    assert.equal("plan", cru.get_session().mode)
    assert.truthy(plan.on_prompt().context:find("planning", 1, true))
    complete("- [ ] read\n- [ ] write")
    assert.equal("- [ ] read\n- [ ] write", plan.command({ input = "show" }).message)
    assert.truthy(plan.command({ input = "go" }).inject:find("- [ ] write", 1, true))
    assert.equal("auto", cru.get_session().mode)
    assert.is_nil(plan.on_prompt())
  end)

  it("says that there is no plan", function()
    assert.truthy(plan.command({ input = "go" }).error:find("no plan", 1, true))
    plan.command { input = "" }
    complete("half a plan", "interrupted")
    complete("  \n")
    assert.truthy(plan.command({ input = "show" }).message:find("no plan", 1, true))
  end)

  it("begins again in the mode, in another run", function()
    plan.command {}
    cru.get_session().mode = "ask"
    plan.on_start()
    assert.equal("plan", cru.get_session().mode)
  end)

  it("ends without work", function()
    plan.command { input = "" }
    assert.equal("planning is over; the mode is auto", plan.command({ input = "off" }).message)
    plan.on_start()
    assert.equal("auto", cru.get_session().mode)
    assert.equal("this is no planning", plan.command({ input = "off" }).message)
  end)
end)
