-- What somebody brings along from crucible: looks, a status line, a token for the provider, isolation, a graph of notes.

cru.colorscheme.setup({ name = "sea" })
cru.hl.set("mode", { fg = "cyan", bold = true })
cru.hl.link("title", "mode")
cru.syntax.setup({ languages = { "lua" } })
cru.ui.setup({ wrap = true })

local line = cru.statusline
cru.statusline.setup({
  bottom = {
    cru.statusline.mode():hl("mode"), cru.statusline.model(), cru.statusline.text(" | "), cru.statusline.context(),
    cru.statusline.spacer(), cru.statusline.any(cru.statusline.status("branch"), cru.statusline.input()),
    cru.statusline.when(function() return true end, cru.statusline.notification()),
    cru.statusline.cache(cru.statusline.expr(function() return "x" end)), cru.statusline.align("right"),
  },
})
assert(line.mode():hl("mode"))

local names = cru.include("names.lua")

cru.on_provider_auth(function(about)
  return { headers = { ["X-Team"] = names.team .. " " .. about.model } }
end)

cru.require_isolation({ exempt = names.harmless })

local graph = { notes = { { title = "sea", links = { "ship", "fog" } }, { title = "ship", links = { "sea" } } } }

local function titles(notes)
  local found = {}
  for _, note in ipairs(notes) do found[#found + 1] = note.title end
  return table.concat(found, ",")
end

--- Which notes hang together.
-- @tool name="links"
-- @param note string its title
function links(args)
  local note = cru.graph.find(graph, args.note)
  if not note then return "no note" end
  return titles(cru.graph.outlinks(graph, note.title)) .. " < " .. titles(cru.graph.inlinks(graph, note.title))
end
