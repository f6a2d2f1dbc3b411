-- Release notes from the commits since the last tag, put on top of CHANGELOG.md.

local HEADINGS = { { "feat", "New" }, { "fix", "Mended" } }

--- Write the release notes of the commits since the last tag on top of CHANGELOG.md.
-- @tool name="release_notes"
-- @param version string The version that is released
function release_notes(args)
  if not cru.shell.which("git") then
    return { content = "git is missing", is_error = true }
  end
  local tag = cru.shell("git", { "describe", "--tags", "--abbrev=0" })
  local range = tag.success and tag.stdout:gsub("%s+$", "") .. "..HEAD" or "HEAD"
  local kinds, count = {}, 0
  cru.shell.spawn("git", { "log", "--reverse", "--format=%s", range }, {
    on_line = function(_, line)
      local kind, text = line:match("^(%w+): (.+)$")
      if kind then
        kinds[kind] = kinds[kind] or {}
        table.insert(kinds[kind], text)
        count = count + 1
      end
    end,
  })
  write_draft(args.version, kinds)
  put_on_top()
  cru.shell.exec("git", { "add", "CHANGELOG.md" })
  return count .. " commits since " .. range .. "; files: " .. table.concat(cru.fs.list("."), " ")
end

function write_draft(version, kinds)
  cru.fs.mkdir("draft")
  cru.fs.write("draft/notes.md", "# " .. version .. "\n")
  for _, pair in ipairs(HEADINGS) do
    if kinds[pair[1]] then
      cru.fs.append("draft/notes.md", "\n## " .. pair[2] .. "\n")
      for _, text in ipairs(kinds[pair[1]]) do
        cru.fs.append("draft/notes.md", "- " .. text .. "\n")
      end
    end
  end
end

function put_on_top()
  if cru.fs.is_dir("CHANGELOG.md") then error("CHANGELOG.md is a folder") end
  if cru.fs.is_file("CHANGELOG.md") then
    cru.fs.copy("CHANGELOG.md", "CHANGELOG.md.old")
    cru.fs.append("draft/notes.md", "\n" .. cru.fs.read("CHANGELOG.md"))
  end
  cru.fs.rename("draft/notes.md", "CHANGELOG.md")
  if cru.fs.exists("draft") then cru.fs.remove("draft") end
end
