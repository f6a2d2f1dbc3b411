-- The globals of a plugin's tests: describe, it, pending, before_each, after_each, run_tests, and `assert` as a table.
-- An assertion that fails raises at the line of its caller. Nothing is printed.

local current                  -- the suite whose body runs now
local collected = {}           -- the tests of closed suites, in the order in which these closed

-- What is being tested, in words ------------------------------------------------------------------------------------------------
local DEEPEST = 4

local function show(value, depth, above)
  if type(value) == "string" then return string.format("%q", value):gsub("\\\n", "\\n") end
  if type(value) ~= "table" then return tostring(value) end
  if depth >= DEEPEST or above[value] then return "{...}" end
  above[value] = true
  local shown, length = {}, #value
  for i = 1, length do shown[i] = (show(value[i], depth + 1, above)) end
  local named = {}
  for key, inner in pairs(value) do
    if not (math.type(key) == "integer" and key >= 1 and key <= length) then
      local name = type(key) == "string" and key:match("^[%a_][%w_]*$") or "[" .. (show(key, depth + 1, above)) .. "]"
      named[#named + 1] = name .. " = " .. (show(inner, depth + 1, above))
    end
  end
  table.sort(named)
  for _, pair in ipairs(named) do shown[#shown + 1] = pair end
  above[value] = nil
  return #shown == 0 and "{}" or "{ " .. table.concat(shown, ", ") .. " }"
end
local function shown(value) return (show(value, 0, {})) end

local function text(raised)
  if type(raised) == "table" and type(raised.message) == "string" then return raised.message end
  return tostring(raised)
end

local function told(raised)    -- a message handler: the message without its place, and the place with the file's whole name
  local message = text(raised)
  local short, digits, rest = message:match("^([^\n:]+):(%d+): (.*)$")
  local line = math.tointeger(tonumber(digits))
  for level = 2, 200 do
    local info = debug.getinfo(level, "Sl")
    if not info then break end
    local theirs = info.currentline > 0 and not info.source:find("^=%[cru")
    if theirs and (not short or (info.short_src == short and info.currentline == line)) then
      return { error = rest or message, file = info.source:match("^@(.*)$") or info.short_src, line = info.currentline }
    end
  end
  return { error = rest or message, file = short, line = line }
end

-- Suites ------------------------------------------------------------------------------------------------------------------------
local function suite_for(name)
  if not current then error(name .. " must be called inside describe", 3) end
  return current
end

function describe(name, body)
  local suite = { name = tostring(name), outer = current, tests = {}, before = {}, after = {} }
  current = suite
  local ok, raised = pcall(body)
  current = suite.outer
  if not ok then error("Error in describe block '" .. suite.name .. "': " .. text(raised), 0) end
  table.move(suite.tests, 1, #suite.tests, #collected + 1, collected)
end

local function add(suite, name, body)
  suite.tests[#suite.tests + 1] = { name = tostring(name), suite = suite, body = body }
end
function it(name, body)
  local suite = suite_for("it")
  if type(body) ~= "function" then error("it(name, function): there is no function; pending(name) is a test to be written", 2) end
  add(suite, name, body)
end
function pending(name) add(suite_for("pending"), name, nil) end
function before_each(hook)
  local hooks = suite_for("before_each").before
  hooks[#hooks + 1] = hook
end
function after_each(hook)
  local hooks = suite_for("after_each").after
  hooks[#hooks + 1] = hook
end

-- Running -----------------------------------------------------------------------------------------------------------------------
local function attempt(call)   -- nil, or what went wrong
  local ok, problem = xpcall(call, told)
  return not ok and problem or nil
end

local function placed(problem, body)  -- an assertion in tail position (all of Fennel's last ones) leaves no line: that of the test, then
  if not problem or problem.file then return problem end
  local info = debug.getinfo(body, "S")
  problem.file, problem.line = info.source:match("^@(.*)$") or info.short_src, info.linedefined
  return problem
end

local function first_problem(hooks)
  for _, hook in ipairs(hooks) do
    local problem = attempt(hook)
    if problem then return problem end
  end
end

local function run(test)
  local suites, problem = {}, nil
  local suite = test.suite
  while suite do
    table.insert(suites, 1, suite)
    suite = suite.outer
  end
  for _, outer in ipairs(suites) do problem = problem or first_problem(outer.before) end
  problem = problem or placed(attempt(test.body), test.body)
  for i = #suites, 1, -1 do    -- also after a failure: what a test leaves behind must not reach the next one
    local late = first_problem(suites[i].after)
    problem = problem or late
  end
  return problem, suites
end

function run_tests()
  local report = { passed = 0, failed = 0, pending = 0, errors = {} }
  for _, test in ipairs(collected) do
    local problem, suites
    if test.body then problem, suites = run(test) end
    if not test.body then
      report.pending = report.pending + 1
    elseif not problem then
      report.passed = report.passed + 1
    else
      local names = {}
      for i, suite in ipairs(suites) do names[i] = suite.name end
      problem.name, problem.suite = test.name, table.concat(names, " / ")
      report.failed = report.failed + 1
      report.errors[report.failed] = problem
    end
  end
  return report
end

-- Assertions --------------------------------------------------------------------------------------------------------------------
local function same(a, b, seen)
  if a == b then return true end
  if type(a) ~= "table" or type(b) ~= "table" then return false end
  seen[a] = seen[a] or {}
  if seen[a][b] then return true end
  seen[a][b] = true
  for key, value in pairs(a) do
    if not same(value, b[key], seen) then return false end
  end
  for key in pairs(b) do
    if a[key] == nil then return false end
  end
  return true
end

local function differs(expected, actual, note)
  local message = "Expected: " .. expected .. " / Actual: " .. actual
  error(note == nil and message or tostring(note) .. ": " .. message, 3)
end

local function plain_assert(_, value, ...)  -- as ever, but a message gets the place of the caller
  if value then return value, ... end
  if select("#", ...) == 0 then error("assertion failed!", 2) end
  error((...), 2)
end
assert = setmetatable({}, { __call = plain_assert })

function assert.equal(expected, actual, note)
  if expected ~= actual then differs(shown(expected), shown(actual), note) end
end
function assert.equals(expected, actual, note)
  if expected ~= actual then differs(shown(expected), shown(actual), note) end
end
function assert.deep_equal(expected, actual, note)
  if not same(expected, actual, {}) then differs(shown(expected), shown(actual), note) end
end
function assert.truthy(value, note)
  if not value then differs("a true value", shown(value), note) end
end
function assert.falsy(value, note)
  if value then differs("nil or false", shown(value), note) end
end
function assert.is_nil(value, note)
  if value ~= nil then differs("nil", shown(value), note) end
end
function assert.is_not_nil(value, note)
  if value == nil then differs("anything but nil", "nil", note) end
end
for _, kind in ipairs { "string", "number", "table", "function" } do
  assert["is_" .. kind] = function(value, note)
    if type(value) ~= kind then differs("a " .. kind, shown(value), note) end
  end
end
function assert.has_error(call, part)
  local ok, raised = pcall(call)
  if ok then differs(part and "an error with " .. shown(part) or "an error", "no error") end
  if part and not text(raised):find(part, 1, true) then differs("an error with " .. shown(part), shown(text(raised))) end
end

-- Waiting -----------------------------------------------------------------------------------------------------------------------
-- A test that waits on the real clock is told where it does. What `cru` itself waits for is waited for in `cru.timer.sleep`, too.
local LEAST = 0.05             -- seconds that are worth a word
local sleep, retry = cru.timer.sleep, cru.retry
local waits, order = {}, {}    -- "file:line" -> seconds
local calling                  -- where the test called what is waiting now

local function caller()
  for level = 3, 200 do
    local info = debug.getinfo(level, "Sl")
    if not info then return nil end
    if info.currentline > 0 and not info.source:find("^=%[cru") then
      return (info.source:match("^@(.*)$") or info.short_src) .. ":" .. info.currentline
    end
  end
end
function cru.timer.sleep(seconds)
  if type(seconds) == "number" and seconds >= LEAST then
    local place = caller() or calling or "work beside the tests"
    if not waits[place] then order[#order + 1] = place end
    waits[place] = (waits[place] or 0) + seconds
  end
  return sleep(seconds)
end
function cru.retry(...)
  local before = calling
  local _ <close> = setmetatable({}, { __close = function() calling = before end })
  calling = caller() or before
  return retry(...)
end

local function stand_in(name)  -- what is at this name now
  local value = cru
  for part in name:gmatch("[^.]+") do value = type(value) == "table" and value[part] or nil end
  return type(value) == "function" and value or nil
end
local function waited()
  local list = {}
  for i, place in ipairs(order) do list[i] = { where = place, seconds = waits[place] } end
  return list
end
return { stand_in = stand_in, waited = waited }
