local monitor = require("context-monitor")

local usage = cru.context.usage
local function filled(percent, budget)
  cru.context.usage = function() return { percent = percent, budget = budget or 1000 } end
end

describe("context-monitor", function()
  before_each(function()
    monitor.setup {}
    cru.state.clear("context-monitor")
  end)
  after_each(function() cru.context.usage = usage end)

  it("tells the model once a level, within a turn", function()
    filled(69.9)
    assert.is_nil(monitor.on_tools())
    filled(70.4)
    assert.truthy(monitor.on_tools().context:find("fills 70 %", 1, true))
    assert.is_nil(monitor.on_tools())
    filled(91)
    assert.truthy(monitor.on_tools().context:find("what matters", 1, true))
    assert.is_nil(monitor.on_tools())
  end)

  it("keeps the note for the next prompt after a turn", function()
    filled(75)
    assert.is_nil(monitor.on_turn_complete())
    assert.truthy(monitor.on_prompt().context:find("room left", 1, true))
    assert.is_nil(monitor.on_prompt())
  end)

  it("begins anew after a compaction", function()
    filled(90)
    monitor.on_turn_complete()
    monitor.on_compacted()
    assert.is_nil(monitor.on_prompt())
    filled(72)
    assert.truthy(monitor.on_tools())
  end)

  it("says nothing where the window is not known, and to the user alone if it is told so", function()
    filled(99, 0)
    assert.is_nil(monitor.on_tools())
    monitor.setup { tell_model = false }
    filled(99)
    assert.is_nil(monitor.on_tools())
    assert.equal(2, cru.state.get("context-monitor").told)
  end)

  it("refuses levels in the wrong order", function()
    assert.has_error(function() monitor.setup { first = 90 } end, "first must be less than second")
  end)
end)
