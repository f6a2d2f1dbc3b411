-- What authors of plugins for Crucible may rely on, and what cru does instead on purpose; `because` gives the reason.
-- A row is a line that begins with `---` and the code below it, which returns true (test_statements.py).

--- cru.ws.connect opens a web socket
--- because cru has no web sockets yet
return fails(function() cru.ws.connect('ws://127.0.0.1:9') end)

--- sessions.review_list_hunks lists changes
--- because cru keeps no reviews
local v, why = cru.sessions.review_list_hunks('x')
return v == nil and type(why) == 'string'

--- context.register_validator checks replies
--- because cru validates no replies yet
local v, why = cru.context.register_validator('n', function() end)
return v == nil and type(why) == 'string'

--- cru.on raises for an unknown event
--- because scripts may emit events of their own, so an unknown name is only reported
return cru.on('my:own', function() end) ~= nil

--- fs.read raises for a missing file
--- because the programs of Crucible's authors test for nil
local text, why = fs.read('missing')
return text == nil and type(why) == 'string'

--- precognition_format makes the text of notes
--- because cru words notes itself; precognition_select chooses them, and the name is reported as one that never fires
return cru.on('precognition_format', function() end) ~= nil

--- cru.kiln and cru.vault are one table
--- because names are made when they are used; both have the same functions
return cru.kiln ~= cru.vault and cru.kiln.list ~= nil and cru.vault.list ~= nil
