-- Fennel's compiler in a machine of its own: no files, no programs, no `cru`. Takes: source and file (of fennel.lua). Returns a function
-- (code, file) -> true and the code in Lua, line by line where it was, or false and what is wrong.

local source, file = ...
local function no_files(name) return nil, tostring(name) .. ": code is compiled without files" end
local function no_output(stream) return stream end
local stream = { write = no_output, flush = no_output }

io = { open = no_files, popen = no_files, lines = no_files, stdout = stream, stderr = stream, write = no_output }
os = { clock = os.clock, time = os.time, date = os.date, getenv = function() return nil end }
loadfile, dofile, print = no_files, no_files, no_output
package.loaded.io, package.loaded.os = io, os
package.path, package.cpath, package.searchpath = "", "", no_files
package.searchers = { package.searchers[1] }

local chunk, problem = load(source, "@" .. file)
if not chunk then error(problem, 0) end
local fennel = chunk()
if type(fennel) ~= "table" or type(fennel.compileString) ~= "function" then error("it has no function compileString", 0) end

return function(code, name)
  local options = { filename = name, correlate = true, allowedGlobals = false, unfriendly = true }
  local is_compiled, result = pcall(fennel.compileString, code, options)
  if is_compiled and type(result) ~= "string" then return false, "compileString gave no text" end
  return is_compiled, is_compiled and result or tostring(result)
end
