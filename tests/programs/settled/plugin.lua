-- A configuration as people bring it from crucible: how the terminal looks, headers for the company's proxy, no command outside of a container,
-- and a tool about a handful of notes.

cru.colorscheme.setup { name = "dark" }
cru.syntax.setup { theme = "dark" }
cru.ui.setup { border = "rounded" }
cru.hl.set("Title", { fg = "cyan", bold = true })
cru.hl.link("Mode", "Title")
cru.statusline.setup {
  top = { cru.statusline.mode():hl("Mode"), cru.statusline.model { max = 20 }, cru.statusline.align("right"), cru.statusline.context() },
  prompt = { cru.statusline.text("> "), cru.statusline.input() },
  bottom = {
    cru.statusline.any(cru.statusline.notification(), cru.statusline.status()),
    cru.statusline.spacer(),
    cru.statusline.when(true, cru.statusline.expr("branch")),
    cru.statusline.cache(),
  },
}

local settings = cru.include("settled.conf")
cru.on_provider_auth(function(about) return { ["x-team"] = settings.team .. " " .. about.model } end)
cru.require_isolation { exempt = { "write" }, exec_prefix = { "docker", "exec", "box" } }

local notes = { notes = { { title = "sea", links = { "sky", "nowhere" } }, { title = "sky" }, { title = "rain", links = { "sky" } } } }
local function titles(list)
  local made = {}
  for i, note in ipairs(list) do made[i] = note.title end
  return table.concat(made, "+")
end

return {
  tools = {
    about = {
      desc = "what is known of a note",
      params = { { name = "title", type = "string", desc = "of the note" } },
      fn = function(args)
        if not cru.graph.find(notes, args.title) then return "no such note" end
        return titles(cru.graph.outlinks(notes, args.title)) .. " < " .. titles(cru.graph.inlinks(notes, args.title))
      end,
    },
  },
}
