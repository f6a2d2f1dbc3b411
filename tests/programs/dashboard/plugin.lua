-- A view of the work, made of nodes and handed on as data: another program may draw it.

local meter = cru.oil.component(function(props)
  return cru.oil.row(cru.oil.text(props.label, { bold = true }), cru.oil.spacer(), cru.oil.progress(props.part, props.width))
end, { label = "work", width = 10 })

local function header(state)
  return cru.oil.col(
    { gap = 1 },
    cru.oil.match_state(state, { busy = function() return cru.oil.spinner("busy") end, _ = cru.oil.badge("idle", { fg = "green" }) }),
    cru.oil.when(state == "busy", cru.oil.divider("=", 20)),
    cru.oil.either(state == "busy", cru.oil.hr(), nil),
    cru.oil.if_else(state == "idle", "nothing to do", "at work")
  )
end

local function list(todos)
  return cru.oil.fragment(
    cru.oil.bullet_list(todos),
    cru.oil.numbered_list(todos),
    cru.oil.each(todos, function(todo, i) return cru.oil.kv(i, todo) end),
    cru.oil.maybe(todos[9], function(todo) return cru.oil.text(todo) end)
  )
end

--- A picture of the work as JSON.
-- @tool name="draw"
-- @param state string busy or idle
-- @param todos array What is to be done
function draw(args)
  local view = cru.oil.col(
    header(args.state),
    meter({ part = 0.5 }),
    list(args.todos),
    cru.oil.markup("<p>ask <b>why</b></p>"),
    cru.oil.input({ placeholder = "what next?" }),
    cru.oil.popup({ "go", { label = "stop" } }, 1),
    cru.oil.scrollback("log", "the end")
  ):with_border("rounded")
  return cru.json.encode(view:as_data())
end
