-- Asks the person before work begins; where nobody is, everything has a sensible answer, or the model answers.

local PLACES = { "here", "in a branch", "nowhere" }

local function where_to()
  local question = cru.ask.question("Place", "Where shall I work?"):choices(PLACES)
  local batch = cru.ask.batch():question(question)
  local response = cru.ask.ask_user(batch)
  local answer = response:is_cancelled() and cru.ask.answer({ 1 }) or response:answer(1)
  return answer:has_other() and answer:other() or question:get_choices()[answer:first_selected() + 1]
end

local function reviewer()
  local panel = cru.ui.select("Reviewer", { "Ada", "Mary" })
  local chosen = cru.show_panel(panel)
  if chosen.cancelled then
    chosen = cru.ui.result_selected({ 0 })
  end
  return chosen.other or panel.items[chosen.selected[1] + 1].label
end

local function template()
  local entries = { cru.popup.entry("short", "one line"), cru.popup.entry_with_data("long", "a page", { lines = 40 }) }
  local found = cru.popup.show(cru.popup.request("Template", entries))
  if found.selected_entry == nil then found = cru.popup.response_selected(1, entries[2]) end
  return found.selected_entry.label .. "/" .. tostring((found.selected_entry.data or { lines = 1 }).lines)
end

--- Ask what must be known before the work begins.
-- @tool name="interview"
function interview()
  return table.concat({ where_to(), reviewer(), template() }, ", ")
end

--- Every other kind of dialog, one after another; says what each gave.
-- @tool name="all_dialogs"
function all_dialogs()
  local said = {}
  local function note(name, found) table.insert(said, name .. " " .. tostring(found)) end
  note("sure", cru.ui.panel(nil, cru.ui.confirm("Sure?")).kind)
  local hints = cru.ui.hints():filterable():initial_selection({ 1 })
  local items = { cru.ui.item("left"), cru.ui.item_with_data("right", "the other way", 7) }
  note("way", cru.show_panel(cru.ui.panel("Way", items, hints)).kind)
  note("same", cru.show_panel(cru.ui.panel_with_hints("Way", { cru.ui.panel_item("left") }, cru.ui.panel_hints())).kind)
  note("ways", cru.show_panel(cru.ui.multi_select("Ways", { "left", "right" })).kind)
  note("note", cru.show_panel(cru.ui.search("Note", { "sea" })).kind)
  note("ask", cru.ui.ask(nil, { question = "Sure?", choices = { "yes" } }).kind)
  note("batch", cru.ui.ask_batch(nil, { questions = { { question = "Sure?" } } }).kind)
  note("edit", cru.ui.edit(nil, { content = "draft" }).kind)
  note("show", cru.ui.show(nil, { content = "the end" }).kind)
  note("popup", cru.ui.popup(nil, { title = "What?", entries = { "a" } }).kind)
  note("leave", cru.ui.permission(nil, { action = { type = "bash", tokens = { "make" } } }).kind)
  local free = cru.popup.show(cru.popup.request_with_other("Which?", { "a" }))
  note("free", next(free) == next(cru.popup.response_none()))
  note("other", cru.popup.response_other("neither").other .. " " .. cru.ui.result_other("none").other)
  note("none", cru.ui.result_cancelled().cancelled)
  note("words", cru.ask.answer_other("as you like"):other())
  note("told", cru.ask.notify("that is all").message)
  return table.concat(said, "\n")
end

--- Let the model answer, beside the conversation.
-- @tool name="second_opinion"
-- @param question string What is to be decided
function second_opinion(args)
  local question = cru.ask.question("Opinion", args.question):choices({ "yes", "no" })
  local response = cru.ask.agent(cru.ask.batch():question(question))
  return question:get_choices()[response:answer(1):first_selected() + 1]
end
