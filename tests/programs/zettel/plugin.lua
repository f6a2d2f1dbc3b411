-- A desk over the vault: what is known of a note, in crucible's older names (vault, graph) and its newer ones (kiln).

local function paths(notes)
  local out = {}
  for i, note in ipairs(notes) do out[i] = note.path end
  return table.concat(out, ",")
end

local function joined(list) return table.concat(list, ",") end

--- Say everything about a note, and keep what was said.
-- @tool name="desk"
-- @param path string The note
function desk(args)
  local note = cru.vault.get(args.path)
  local lines = {
    note.title .. " in " .. cru.vault.active .. "=" .. cru.kiln.active,
    "all " .. paths(cru.vault.list()) .. " first " .. paths(cru.kiln.list(1)) .. paths(cru.graph.note_list(1)),
    "same " .. cru.kiln.get(args.path).path .. " " .. cru.graph.note_get(args.path).path .. " " .. cru.graph.db_find(note.title).path,
    "out " .. joined(cru.vault.outlinks(args.path)) .. " " .. joined(cru.kiln.outlinks(args.path)),
    "back " .. joined(cru.vault.backlinks(args.path)) .. " " .. joined(cru.kiln.backlinks(args.path)),
    "near " .. joined(cru.vault.neighbors(args.path, 2)) .. " " .. joined(cru.kiln.neighbors(args.path)),
    "fast " .. joined(cru.graph.fast_outlinks(args.path)) .. " " .. joined(cru.graph.fast_backlinks(args.path)) .. " "
      .. joined(cru.graph.fast_neighbors(args.path, 2)),
    "graph " .. paths(cru.graph.db_outlinks(note.title)) .. " " .. paths(cru.graph.db_inlinks(note.title)) .. " "
      .. paths(cru.graph.db_neighbors(note.title)),
    "query " .. joined(cru.graph.db_query('find("' .. note.title .. '") | ->[] | map(.title)')[1]),
    "found " .. paths(cru.search("pause")) .. " " .. paths(cru.vault.search("pause", { limit = 1 })) .. " "
      .. cru.kiln.search("growing")[1].snippet,
  }
  cru.vault.create_note { path = "desk/" .. note.title, body = table.concat(lines, "\n") .. "\n", frontmatter = { about = args.path } }
  return cru.kiln.create_note { path = "desk/index", body = "[[" .. note.title .. "]]\n", overwrite = true }
end
