-- A stand-in for Fennel's compiler: just enough of the language for the tests of plugins. Lists are read, and written as Lua line by line.

local SYMBOL = "[^%s()%[%]{}\";]"
local VARIADIC = { ["+"] = "+", ["-"] = "-", ["*"] = "*", [".."] = "..", ["="] = "==", ["<"] = "<", [">"] = ">", ["and"] = "and", ["or"] = "or" }
local CLOSING = { ["("] = ")", ["["] = "]", ["{"] = "}" }

local function fail(file, line, text) error(file .. ":" .. line .. ":1: Parse error: " .. text, 0) end

local function parse(text, file)
  local at, line = 1, 1
  local function blank()
    while at <= #text do
      local char = text:sub(at, at)
      if char == "\n" then line = line + 1 end
      if char == ";" then
        at = text:find("\n", at, true) or #text + 1
      elseif char:find("%s") then
        at = at + 1
      else
        return
      end
    end
  end
  local form
  local function list(open)
    local node, start = { kind = open, line = line }, line
    at = at + 1
    while true do
      blank()
      if at > #text then fail(file, start, "expected closing delimiter " .. CLOSING[open]) end
      if text:sub(at, at) == CLOSING[open] then
        at = at + 1
        return node
      end
      node[#node + 1] = form()
    end
  end
  function form()
    local char = text:sub(at, at)
    if CLOSING[char] then return list(char) end
    if char == '"' then
      local stop = at
      repeat stop = text:find('"', stop + 1, true) until text:sub(stop - 1, stop - 1) ~= "\\"
      local node = { kind = "text", value = text:sub(at, stop), line = line }
      at = stop + 1
      return node
    end
    local word = text:match("^" .. SYMBOL .. "+", at)
    if not word then fail(file, line, "unexpected " .. char) end
    at = at + #word
    if word:find("^:.") then return { kind = "text", value = ("%q"):format(word:sub(2)), line = line } end
    return { kind = "word", value = word, line = line }
  end
  local forms = {}
  blank()
  while at <= #text do
    forms[#forms + 1] = form()
    blank()
  end
  return forms
end

local function name(word)
  local first, rest = word:match("^([^.:]+)([.:]?.*)$")
  if not first then return word end
  first = first:gsub("-", "_"):gsub("%?", "_q")
  return first .. rest:gsub("%.([^.:]+)", function(key) return ("[%q]"):format(key) end)
end

local function compile(text, options)
  local out, line = {}, 1
  local function put(piece, node)
    if node then
      while line < node.line do
        out[#out + 1] = "\n"
        line = line + 1
      end
    end
    out[#out + 1] = piece
  end
  local value, statement
  local function values(node, first, between)
    for i = first, #node do
      if i > first then put(between) end
      value(node[i])
    end
  end
  local function body(node, first)
    for i = first, #node do statement(node[i], i == #node) end
  end
  local function fn(node, parameters)
    put("(", node)
    for i, parameter in ipairs(parameters) do put((i > 1 and ", " or "") .. name(parameter.value)) end
    put(")")
  end
  local function call(node)
    value(node[1])
    put("(")
    values(node, 2, ", ")
    put(")")
  end
  function value(node)
    local head = node.kind == "(" and node[1] and node[1].value
    if node.kind == "word" then
      put(node.value == "nil" and "nil" or name(node.value), node)
    elseif node.kind == "text" then
      put(node.value, node)
    elseif node.kind == "[" then
      put("{", node)
      values(node, 1, ", ")
      put("}")
    elseif node.kind == "{" then
      put("{", node)
      for i = 1, #node, 2 do
        put("[", node[i])
        value(node[i])
        put("] = ")
        value(node[i + 1])
        put(", ")
      end
      put("}")
    elseif head == "fn" then
      put("function", node)
      fn(node, node[2])
      body(node, 3)
      put(" end")
    elseif head == "eval-compiler" then
      put(("%q"):format(tostring(assert(load(node[2].value:sub(2, -2)))())), node)
    elseif head == "." then
      value(node[2])
      put("[")
      value(node[3])
      put("]")
    elseif VARIADIC[head] then
      put("(", node)
      values(node, 2, " " .. VARIADIC[head] .. " ")
      put(")")
    else
      call(node)
    end
  end
  function statement(node, is_last)
    local head = node.kind == "(" and node[1] and node[1].value
    if head == "fn" and node[2].kind == "word" then
      local target = name(node[2].value)
      local is_plain = not node[2].value:find("[.:]")
      put((is_plain and "local " .. target .. "; " or "") .. target .. " = function", node)
      fn(node, node[3])
      body(node, 4)
      put(" end; ")
      if is_last then put("return " .. target) end
    elseif head == "local" or head == "global" then
      put((head == "local" and "local " or "") .. name(node[2].value) .. " = ", node)
      value(node[3])
      put("; ")
    elseif head == "tset" then
      value(node[2])
      for i = 3, #node - 1 do
        put("[")
        value(node[i])
        put("]")
      end
      put(" = ")
      value(node[#node])
      put("; ")
    elseif head == "when" then
      put("if ", node)
      value(node[2])
      put(" then ")
      body(node, 3)
      put(" end; ")
    elseif is_last then
      put("do return ", node)
      value(node)
      put(" end; ")
    else
      put("; ", node)
      if node.kind == "(" then call(node) end
      put("; ")
    end
  end
  local forms = parse(text, options.filename)
  for i, node in ipairs(forms) do
    if i > 1 then put(" ") end
    statement(node, i == #forms)
  end
  return table.concat(out)
end

return { compileString = compile, version = "stand-in" }
