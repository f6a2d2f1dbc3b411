local ralph = require("ralph-loop")

local TAG = "<promise>DONE</promise>"
local function complete(response, more)
  local event = { cause = "done", response = response, queued = 0, no_progress = 0 }
  for key, value in pairs(more or {}) do event[key] = value end
  return ralph.on_turn_complete({ is_continuation = true }, event)
end

describe("ralph-loop", function()
  before_each(function()
    ralph.setup {}
    cru.state.clear("ralph-loop")
    ralph.on_prompt { is_continuation = false }
  end)

  it("does nothing before it is started", function() assert.is_nil(complete("…")) end)

  it("goes on until the tag is said", function()
    assert.truthy(ralph.command { input = "port the parser" }.inject:find("port the parser", 1, true))
    assert.truthy(complete("one").inject:find("Turn 2 of 100", 1, true))
    assert.truthy(complete("two").inject:find(TAG, 1, true))
    ralph.on_result({}, { name = "bash" })
    local over = complete("All is well. " .. TAG).outcome
    assert.deep_equal({ "done", "ralph-loop: complete after 3 of 100 turns", {}, { "the agent said " .. TAG } },
      { over.kind, over.reason, over.open, over.evidence })
    assert.is_nil(cru.state.get("ralph-loop"))
  end)

  it("takes a tag as plain text", function()
    ralph.start("go", { tag = "100% (a.b)" })
    assert.truthy(complete("100x (aXb)"))
    ralph.on_result({}, { name = "bash" })
    assert.equal("done", complete("that is 100% (a.b)").outcome.kind)
  end)

  it("does not take a quotation for a promise", function()
    local loop = { tag = "DONE" }
    for _, text in ipairs {
      "```\nDONE\n```", "~~~\necho DONE\n~~~", "> DONE", "I am to say `DONE` then.", 'not "DONE" yet', "“DONE”",
      "You said: When the task is complete and you have checked it, say DONE.", "I will say DONE when the tests pass.",
      "This is not DONE.", "It isn't DONE yet.", "It isn’t DONE yet.", "I cannot say DONE.", "Before I say DONE I run the tests.",
      "Once all is green: DONE", "````\n```\nDONE\n````", "```lua\nx\n~~~\nDONE\n```", "`echo DONE`",
    } do
      assert.falsy(ralph.complete(text, loop))
    end
    for _, text in ipairs {
      "DONE", "```\nx\n```\nDONE", "All tests pass. DONE.", "It did not work at first. DONE", "I will not stop.\n**DONE**",
      "I said I would say DONE. DONE", "All notes are written, DONE", "````\n```\n````\nDONE", "DONE!",
    } do
      assert.truthy(ralph.complete(text, loop))
    end
    ralph.setup { strict = false }
    assert.truthy(ralph.complete("```\nDONE\n```", loop))
  end)

  it("takes no promise before something was done, and gives up at the second one", function()
    ralph.start("go")
    ralph.on_result({}, { name = "update_todos" })   -- a list is no work
    assert.truthy(complete(TAG).inject:find("nothing was done yet", 1, true))
    local over = complete(TAG).outcome
    assert.deep_equal({ "gave_up", { "go" } }, { over.kind, over.open })
    ralph.setup { evidence = false }
    ralph.start("go")
    assert.equal("done", complete(TAG).outcome.kind)
  end)

  it("ends at its limit, and without progress", function()
    ralph.start("go", { max = 2 })
    assert.truthy(complete("one"))
    local over = complete("two").outcome
    assert.deep_equal({ "out_of_budget", { "go" } }, { over.kind, over.open })
    assert.is_nil(ralph.loop())
    ralph.start("go")
    assert.equal("gave_up", complete("same", { no_progress = 3 }).outcome.kind)
    assert.is_nil(ralph.loop())
  end)

  it("asks for a person when the agent does, and goes on after the answer", function()
    ralph.start("go")
    local over = complete("Which one", { called_user = true }).outcome
    assert.deep_equal({ "needs_person", "ralph-loop: the agent asks: Which one", { "go" } }, { over.kind, over.reason, over.open })
    assert.truthy(complete("this one").inject)
  end)

  it("leaves the turn to prompts that wait, and goes on later", function()
    ralph.start("go")
    assert.is_nil(complete("…", { queued = 1 }))
    assert.truthy(complete("…"))
  end)

  it("pauses at an interruption: nothing happens by itself for three seconds, a prompt goes on at once", function()
    ralph.start("go")
    assert.is_nil(complete("", { cause = "interrupted" }))
    assert.is_nil(complete("…"))
    assert.truthy(ralph.loop())
    local typed = { cause = "done", response = "…", queued = 0, no_progress = 0 }
    assert.truthy(ralph.on_turn_complete({ is_continuation = false }, typed))
    assert.truthy(complete("…"))
    assert.is_nil(complete("", { cause = "interrupted" }))
    local clock = cru.timer.clock
    cru.timer.clock = function() return clock() + 10 end
    local answer = complete("…")
    cru.timer.clock = clock
    assert.truthy(answer)
  end)

  it("waits longer with each turn that failed, and gives up", function()
    local slept, sleep = {}, cru.timer.sleep
    cru.timer.sleep = function(seconds) slept[#slept + 1] = seconds end
    ralph.start("go")
    for _ = 1, 4 do
      complete("", { cause = "error" })
      ralph.on_turn_complete({ is_continuation = false }, { cause = "done", response = "…", queued = 0, no_progress = 0 })
    end
    complete("", { cause = "error" })
    cru.timer.sleep = sleep
    assert.deep_equal({ 5.0, 10.0, 20.0, 40.0 }, slept)
    assert.is_nil(ralph.loop())
  end)

  it("gives the task again after a compaction, once", function()
    ralph.start("port the parser")
    assert.is_nil(ralph.on_request())
    ralph.on_compacted()
    assert.truthy(ralph.on_request().context:find("port the parser", 1, true))
    assert.is_nil(ralph.on_request())
  end)

  it("clears what is too old or damaged", function()
    ralph.start("go")
    local loop = cru.state.get("ralph-loop")
    loop.at = os.time() - 25 * 3600
    cru.state.set("ralph-loop", loop)
    ralph.setup {}   -- as in a new run
    ralph.on_leg()
    assert.is_nil(cru.state.get("ralph-loop"))
    for _, broken in ipairs { "text", { prompt = 1 }, { prompt = "go", tag = "x" } } do
      cru.state.set("ralph-loop", broken)
      assert.is_nil(complete("…"))
      assert.is_nil(cru.state.get("ralph-loop"))
    end
  end)

  it("reads its options wherever they stand", function()
    local function parsed(text, prompt, opts)
      local got, found = ralph.parse(text)
      assert.equal(prompt, got)
      assert.deep_equal(opts, found)
    end
    parsed("do it", "do it", {})
    parsed("--max 5 do it", "do it", { max = "5" })
    parsed('do it --tag "ALL DONE" --max 7', "do it", { tag = "ALL DONE", max = "7" })
    parsed("--tag X do\n  it --max 3", "do\n  it", { tag = "X", max = "3" })
    parsed("again --max=2 --tag='ALL DONE'", "again", { max = "2", tag = "ALL DONE" })
    parsed("do --max 2 it - a - b", "do it - a - b", { max = "2" })
    parsed("--max 2 -- explain --max of grep", "explain --max of grep", { max = "2" })
    parsed("this -- and -v too", "this -- and -v too", {})
  end)

  it("takes no option that it does not know, and none without a value", function()
    for text, said in pairs {
      ["do it --mx 3"] = "--mx is unknown; did you mean --max?", ["-max 3 do it"] = "-max is unknown; did you mean --max?",
      ["again --max 2 --tag"] = "--tag needs a value", ["--max"] = "--max needs a value", ["go --max= 3"] = "--max needs a value",
      ["--tag --max 3 go"] = "--tag needs a value", ["--force it"] = "--force is unknown; there are --max and --tag",
      ['go --tag "ALL DONE'] = "--tag needs a value",
    } do
      local got = ralph.command { input = text }
      assert.truthy(got.error and got.error:find(said, 1, true), text .. ": " .. tostring(got.error))
    end
    assert.is_nil(ralph.loop())
  end)

  it("answers /ralph stop, /ralph status, and what cannot be", function()
    assert.equal("no loop is under way", ralph.command({ input = "status" }).message)
    assert.equal("no loop is under way", ralph.command({ input = "stop" }).message)
    ralph.start("port the parser")
    assert.truthy(ralph.command({ input = "status" }).message:find("0 of 100", 1, true))
    assert.equal("the loop is stopped", ralph.command({ input = "stop" }).message)
    assert.truthy(ralph.command({}).error:find("usage", 1, true))
    for _, bad in ipairs { "0", "two", "1.5" } do
      assert.truthy(ralph.command({ input = "go --max " .. bad }).error:find("--max", 1, true))
    end
    assert.is_nil(ralph.loop())
    assert.has_error(function() ralph.start(nil) end, "prompt: expected string, got nil")
  end)
end)
