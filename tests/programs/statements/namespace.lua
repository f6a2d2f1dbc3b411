-- What authors of plugins for Crucible rely on in the namespace.
-- A row is a line that begins with `---` and the code below it, which returns true (test_statements.py).

local function same(a, b)
  if type(a) ~= "table" or type(b) ~= "table" then return a == b end
  for k, v in pairs(a) do if not same(v, b[k]) then return false end end
  for k in pairs(b) do if a[k] == nil then return false end end
  return true
end
local function fails(f, part)
  local ok, why = pcall(f)
  return not ok and (part == nil or tostring(why):find(part, 1, true) ~= nil)
end
local function drawn(node) return type(node) ~= "nil" and type(node) ~= "string" end

--- crucible is the same table as cru
return crucible == cru or crucible.fmt == cru.fmt and crucible.on == cru.on

--- The bare globals http, fs, shell, oq, paths, graph, mcp and inspect are members of cru
return http.get == cru.http.get and fs.read == cru.fs.read and shell.exec == cru.shell.exec and oq.parse == cru.oq.parse and paths.join == cru.paths.join and graph.find == cru.graph.find and mcp.call == cru.mcp.call and inspect({ 1 }) == cru.inspect({ 1 })

--- The older globals ask, popup, ui and statusline are members of cru
return ask.question == cru.ask.question and popup.entry == cru.popup.entry and ui.panel == cru.ui.panel and statusline.set == cru.statusline.set

--- Lua is 5.4: utf8, integers and floats, //, table.unpack
return _VERSION == 'Lua 5.4' and utf8.char(228) == 'ä' and 7 // 2 == 3 and math.type(1) == 'integer' and table.unpack({ 5 }) == 5

--- A coroutine yields across pcall
local co = coroutine.wrap(function() pcall(function() coroutine.yield(1) end) return 2 end)
return co() == 1 and co() == 2

--- require("cjson") and require("json") have encode, decode and null
local a, b = require('cjson'), require('json')
return a.decode('{"a":1}').a == 1 and b.encode({ x = 1 }) == '{"x":1}' and a.null ~= nil

--- require("graph") and require("oil") are the members of cru
return require('graph').find == cru.graph.find and require('oil').text == cru.oil.text

--- A plugin may use io, os and load
return type(io.open) == 'function' and type(os.time()) == 'number' and load('return 5')() == 5

--- cru.fmt replaces {name}
return cru.fmt('Hello {name}, {n}', { name = 'you', n = 3 }) == 'Hello you, 3'

--- cru.fmt keeps what it has no value for
return cru.fmt('Hello {name}', {}) == 'Hello {name}'

--- cru.fmt takes nil for no values
return cru.fmt('x {y}') == 'x {y}'

--- cru.fmt prints false
return cru.fmt('{x}', { x = false }) == 'false'

--- cru.fmt returns one value
return select('#', cru.fmt('{x}', { x = 1 })) == 1

--- cru.on takes a function and options, and returns an id
local id = cru.on('turn:complete', function() end, { priority = 5 })
return id ~= nil and cru.off(id)

--- cru.on takes options before the function
return cru.off(cru.on('turn:complete', { priority = 5 }, function() end))

--- cru.on takes a function alone
return cru.off(cru.on('turn:complete', function() end))

--- cru.once returns an id that cru.off knows
return cru.off(cru.once('turn:complete', function() end))

--- cru.off is false for what is not there
local id = cru.on('turn:complete', function() end) cru.off(id)
return cru.off(id) == false

--- cru.on raises for wrong types
return fails(function() cru.on('turn:complete') end) and fails(function() cru.on(5, function() end) end)

--- cru.state.set and get keep tables
cru.state.set('t', { a = { 1, 2 } })
return same(cru.state.get('t'), { a = { 1, 2 } })

--- cru.state.get is nil for an unknown key
return cru.state.get('none') == nil

--- cru.state.clear removes a key
cru.state.set('c', 1) cru.state.clear('c')
return cru.state.get('c') == nil

--- cru.state.set raises for what is no JSON
return fails(function() cru.state.set('f', print) end)

--- cru.storage keeps text by entity and key
cru.storage.set('e', 'k', 'v')
return cru.storage.get('e', 'k') == 'v' and cru.storage.list('e').k == 'v'

--- cru.storage.find gives the entities with a value
cru.storage.set('e1', 'k', 'w')
return same(cru.storage.find('k', 'w'), { 'e1' })

--- cru.storage.delete says whether there was one
cru.storage.set('d', 'k', 'v')
return cru.storage.delete('d', 'k') and not cru.storage.delete('d', 'k')

--- cru.json.decode raises for bad JSON
return fails(function() cru.json.decode('{') end)

--- An empty table is {} unless it is marked
return cru.json.encode({}) == '{}' and cru.json.encode(cru.json.array({})) == '[]'

--- An empty list survives decode and encode
return cru.json.encode(cru.json.decode('{"a":[]}')) == '{"a":[]}'

--- Integers stay integers
return string.format('%d', cru.json.decode('[7]')[1]) == '7' and cru.json.encode({ 1 }) == '[1]'

--- Functions in a table raise
return fails(function() cru.json.encode({ print }) end)

--- crucible.json_encode and json_decode are the same
return crucible.json_decode(crucible.json_encode({ a = 1 })).a == 1

--- cru.log takes a level and a text
cru.log('info', 'x') cru.log('no such level', 'y')
return true

--- crucible.log.levels has numbers
local l = crucible.log.levels
return l.TRACE == 0 and l.DEBUG == 1 and l.INFO == 2 and l.WARN == 3 and l.ERROR == 4 and l.OFF == 5

--- crucible.notify takes a level and options
crucible.notify('n', crucible.log.levels.INFO, { progress = { current = 1, total = 2 } })
return true

--- notify_once is true the first time
return cru.notify_once('only') == true and cru.notify_once('only') == false

--- crucible.messages has toggle, show, hide and clear
for _, n in ipairs { 'toggle', 'show', 'hide', 'clear' } do if type(crucible.messages[n]) ~= 'function' then return false end end
return true

--- fs.write makes folders, fs.read gives the text
fs.write('d/e/f.txt', 'x')
return fs.read('d/e/f.txt') == 'x'

--- fs.append adds
fs.write('a.txt', '1') fs.append('a.txt', '2')
return fs.read('a.txt') == '12'

--- fs.exists, is_file and is_dir
fs.write('g/f', '')
return fs.exists('g') and fs.is_dir('g') and fs.is_file('g/f') and not fs.is_dir('g/f') and not fs.exists('none')

--- fs.list gives names, not paths
fs.write('l/b', '') fs.write('l/a', '') local n = fs.list('l') table.sort(n)
return same(n, { 'a', 'b' })

--- fs.mkdir makes all folders
fs.mkdir('m/n/o')
return fs.is_dir('m/n/o')

--- fs.copy and fs.rename
fs.write('p', '1') fs.copy('p', 'q') fs.rename('p', 'r')
return fs.read('q') == '1' and fs.read('r') == '1' and not fs.exists('p')

--- fs.remove removes folders with what they hold
fs.write('s/t/u', '') fs.remove('s')
return not fs.exists('s')

--- A missing file is nil where the seeds' programs test for it
return fs.read('not there') == nil

--- shell.exec gives success, exit_code, stdout and stderr
local r = shell.exec('printf', { 'hi' })
return r.success and r.exit_code == 0 and r.stdout == 'hi' and r.stderr == ''

--- A non-zero status is no error
local r = shell.exec('false')
return r.success == false and r.exit_code == 1

--- shell.exec takes cwd, env and stdin
local r = shell.exec('sh', { '-c', 'cat; echo $X; pwd' }, { cwd = '/', env = { X = 'e' }, stdin = 'in ' })
return r.stdout == 'in e\n/\n'

--- No shell reads the arguments
return shell.exec('printf', { '%s', '$HOME *' }).stdout == '$HOME *'

--- A program that cannot be started raises
return fails(function() shell.exec('no-such-program-here') end)

--- shell.which gives a path or nil
return shell.which('sh'):sub(1, 1) == '/' and shell.which('no-such-program-here') == nil

--- rm, sudo, chmod and chown are not allowed
for _, p in ipairs { 'rm', 'sudo', '/bin/chmod', 'chown' } do if not fails(function() shell.exec(p) end, 'not allowed by shell policy') then return false end end
return true

--- The module can be called
return crucible.shell('printf', { 'x' }).stdout == 'x'

--- shell.spawn gives lines
local l = {} local r = shell.spawn('printf', { 'a\nb\n' }, { on_line = function(s, t) l[#l + 1] = s .. t end })
return r.success and same(l, { 'stdouta', 'stdoutb' })

--- http never raises on a failure
local r = http.get('http://127.0.0.1:9/')
return r.ok == false and r.status == 0 and r.body == '' and type(r.headers) == 'table' and type(r.error) == 'string'

--- http has get, post, put, patch, delete and request
for _, n in ipairs { 'get', 'post', 'put', 'patch', 'delete', 'request' } do if not http[n] then return false end end
return true

--- vault and kiln have the same names
for _, n in ipairs { 'list', 'get', 'search', 'outlinks', 'backlinks', 'neighbors', 'create_note' } do if not cru.vault[n] or not cru.kiln[n] then return false end end
return true

--- Without notes everything is empty
return #cru.vault.list() == 0 and cru.vault.get('x') == nil and #cru.vault.search('x') == 0 and #cru.vault.outlinks('x') == 0 and #cru.vault.backlinks('x') == 0

--- graph.find, outlinks and inlinks work on a table of one's own
local g = { notes = { { title = 'A', path = 'a', links = { 'B', 'no' } }, { title = 'B', path = 'b', links = {} } } }
return graph.find(g, 'A').path == 'a' and graph.find(g, 'a') == nil and graph.outlinks(g, 'A')[1].title == 'B' and #graph.outlinks(g, 'A') == 1 and graph.inlinks(g, 'B')[1].title == 'A'

--- The older names of graph are there
for _, n in ipairs { 'db_find', 'db_outlinks', 'db_inlinks', 'db_neighbors', 'db_query', 'fast_outlinks', 'fast_backlinks', 'fast_neighbors', 'note_get', 'note_list' } do if not graph[n] then return false end end
return true

--- mcp answers without a server
local r = mcp.call('s', 't', {})
return #mcp.servers() == 0 and r.success == false and type(r.error) == 'string' and mcp.has_tool('s', 't') == false

--- ask builders are immutable
local q = ask.question('H', 't') local r = q:choice('a'):choices { 'b' }:multi_select()
return #q:get_choices() == 0 and same(r:get_choices(), { 'a', 'b' }) and r:is_multi_select() and q:header() == 'H' and q:question_text() == 't'

--- ask.batch counts its questions
return ask.batch():question(ask.question('H', 't')):question_count() == 1

--- ask.answer has indices from 0
local a = ask.answer { 0, 2 }
return a:first_selected() == 0 and a:selection_count() == 2 and a:has_selection() and not a:has_other()

--- ask.answer_other is an answer in words
local a = ask.answer_other('w')
return a:other() == 'w' and a:has_other()

--- A run that nobody watches is cancelled and does not hang
return ask.ask_user(ask.batch():question(ask.question('H', 't'):choices { 'a', 'b' })):is_cancelled()

--- popup builders give tables
return same(popup.entry('a', 'b'), { label = 'a', description = 'b' }) and popup.entry_with_data('a', 'b', 5).data == 5 and popup.request('t', {}).allow_other == false and popup.request_with_other('t', {}).allow_other == true

--- popup responses are tables
local e = popup.entry('a')
return popup.response_selected(0, e).selected_index == 0 and popup.response_other('x').other == 'x' and next(popup.response_none()) == nil

--- ui builders give panels
local p = ui.confirm('sure?')
return #p.items == 2 and p.items[1].label == 'Yes' and ui.select('h', { 'a' }).items[1].label == 'a' and ui.search('h', {}).hints ~= nil

--- ui.hints can be chained
return ui.panel('h', {}, ui.hints():filterable():multi_select():allow_other():initial_selection { 0 }:initial_filter('x')).header == 'h'

--- ui results are tables
return same(ui.result_selected { 1 }, { cancelled = false, selected = { 1 } }) and ui.result_other('o').other == 'o' and ui.result_cancelled().cancelled

--- ui.ask without a person is cancelled
return cru.ui.ask(nil, { question = 'q', choices = { 'a' } }).kind == 'cancelled'

--- paths.join resets at an absolute part
return paths.join('a', 'b') == 'a/b' and paths.join('a', '/c') == '/c'

--- paths.state makes a folder and takes one component
return fs.is_dir(paths.state('mine')) and fails(function() paths.state('../x') end)

--- paths.kiln raises without a kiln
return fails(function() paths.kiln() end, 'not configured')

--- config.get withholds kilns and projects
for _, k in ipairs { 'kilns', 'kiln_path', 'session_kiln', 'projects', 'data_home' } do if cru.config.get(k) ~= nil then return false end end
return true

--- timer.sleep refuses negative times
return fails(function() cru.timer.sleep(-1) end) and fails(function() cru.timer.sleep(1 / 0) end)

--- timer.timeout gives true and the result
local ok, v = cru.timer.timeout(60, function() return 5 end)
return ok == true and v == 5

--- timer.timeout gives false and an error
local ok, why = cru.timer.timeout(60, function() error('no') end)
return ok == false and tostring(why):find('no') ~= nil

--- schedule gives a handle that can be cancelled
return cru.schedule.cancel(cru.schedule({ every = 1000 }, function() end)) == true

--- ratelimit hands out its capacity
local b = cru.ratelimit.new { capacity = 2, interval = 1000 }
return b:try_acquire() and b:try_acquire() and not b:try_acquire() and b:remaining() == 0

--- retry calls again and raises the last error
local n = 0 local ok = pcall(cru.retry, function() n = n + 1 error('x') end, { max_retries = 2, base_delay = 0, jitter = false })
return not ok and n == 3

--- retry ends at what is not retryable
local n = 0 pcall(cru.retry, function() n = n + 1 error('x') end, { max_retries = 5, base_delay = 0, retryable = function() return false end })
return n == 1

--- An emitter calls its listeners, and one that raises stops none
local e, n = cru.emitter.new(), 0 e:on('x', function() error('a') end) e:on('x', function(v) n = n + v end) e:emit('x', 5)
return n == 5 and e:count('x') == 2

--- emitter:once is called once, off takes away
local e, n = cru.emitter.new(), 0 e:once('x', function() n = n + 1 end) local id = e:on('x', function() n = n + 10 end) e:off('x', id) e:emit('x') e:emit('x')
return n == 1

--- emitter.global is one for all
return cru.emitter.global() == cru.emitter.global() or cru.emitter.global():count('none') == 0

--- check.number has the words of the bounds
return fails(function() cru.check.number(1, 'n', { min = 2 }) end, 'n: must be >= 2, got 1') and cru.check.number(3, 'n') == 3

--- check.string says what it got
return fails(function() cru.check.string(5, 's') end, 's: expected string, got number')

--- check.one_of lists the choices
return fails(function() cru.check.one_of('z', { 'a', 'b' }, 'c') end, 'c: must be one of [a, b], got z')

--- checks take optional
return cru.check.string(nil, 's', { optional = true }) == nil

--- tbl_deep_extend forces or keeps
return cru.tbl_deep_extend('force', { a = { x = 1 } }, { a = { x = 2, y = 3 } }).a.x == 2 and cru.tbl_deep_extend('keep', { a = 1 }, { a = 2, b = 3 }).a == 1

--- tbl_get follows keys
return cru.tbl_get({ a = { b = 5 } }, 'a', 'b') == 5 and cru.tbl_get({}, 'a', 'b') == nil

--- health collects and resets
cru.health.start('h') cru.health.ok('fine') cru.health.warn('hm', 'do') cru.health.error('bad') local r = cru.health.get_results()
return r.name == 'h' and r.healthy == false and #r.checks == 3

--- service.define, list and status
cru.service.define { name = 'sv', desc = 'd', start = function() end } local s = cru.service.status('sv')
return s.name == 'sv' and s.running == false and cru.service.status('none') == nil

--- errors.recent is a list
return type(cru.errors.recent()) == 'table'

--- inspect shows tables
return cru.inspect({ a = 1 }):find('a') ~= nil

--- tools.list has name, description and parameters
local t = cru.tools.list()[1]
return t.name ~= nil and t.description ~= nil and t.parameters ~= nil

--- tools.call gives a text, or nil and a reason
local r, why = cru.tools.call('no_such_tool', {})
return r == nil and type(why) == 'string'

--- context.estimate_tokens is a quarter of the bytes, rounded up
return cru.context.estimate_tokens('12345') == 2

--- context.usage has messages, prompt_tokens, budget and percent
local u = cru.context.usage(cru.get_session().id)
return u.messages ~= nil and u.prompt_tokens ~= nil and u.budget ~= nil and u.percent ~= nil

--- context.attach adds once for a key
local id = cru.get_session().id
return cru.context.attach(id, 'note', { key = 'k' }) == true

--- sessions.get of an unknown id gives nil
return cru.sessions.get('none') == nil

--- get_session has id, workspace, model and mode
local s = cru.get_session()
return #s.id > 0 and #s.workspace > 0 and type(s.mode) == 'string'

--- An unknown property of a session raises
return fails(function()
return cru.get_session().nothing end)

--- session.id cannot be assigned
return fails(function() cru.get_session().id = 'x' end)

--- set_variable and get_variable
cru.get_session():set_variable('v', { 1 })
return same(cru.get_session():get_variable('v'), { 1 })

--- cru.defaults.system_prompt can be appended to
local old = cru.defaults.system_prompt
return #old > 0 and #(old .. 'more') == #old + 4

--- cru.defaults.temperature is between 0 and 2
return fails(function() cru.defaults.temperature = 3 end)

--- A mode can be defined and removed
cru.modes.review = { description = 'd', tools = { 'read' }, permissions = 'deny' } cru.modes.review = nil
return true

--- statusline.set says whether something changed
local id = cru.get_session().id
return cru.statusline.set(id, 'k', 'v').ok and cru.statusline.set(id, 'k', 'v').unchanged == true

--- publish takes a key and JSON
cru.publish('targets', { 1 })
return true

--- permissions.on_request takes options
return cru.permissions.on_request(function() end, { priority = 1000, pattern = 'none' }) ~= nil

--- on_session_end and on_provider_auth register
return cru.on_session_end(function() end) ~= nil

--- The terminal's look is accepted
crucible.hl.set('T', { fg = 'cyan', bold = true }) crucible.hl.link('A', 'T') crucible.statusline.setup { bottom = { crucible.statusline.mode() } } crucible.colorscheme.setup {}
return true

--- oil.text takes texts and numbers, and nil for nothing
return drawn(cru.oil.text('x')) and drawn(cru.oil.text(5)) and drawn(cru.oil.text(nil)) and fails(function() cru.oil.text({}) end)

--- A child that is no node raises with its place
return fails(function() cru.oil.col({ gap = 1 }, 'a', true) end, "child at position")

--- oil widgets are nodes
local o = cru.oil for _, n in ipairs { o.spacer(), o.spinner('l'), o.progress(0.5), o.badge('b'), o.divider(), o.hr(), o.input {}, o.popup({ 'a' }), o.bullet_list { 'a' }, o.numbered_list { 'a' }, o.kv('k', 'v') } do if not drawn(n) then return false end end
return true

--- oil.when, either and each
local o = cru.oil return drawn(o.when(true, o.text('a'))) and drawn(o.either(false, o.text('a'), o.text('b'))) and drawn(o.each({ 1 }, function(i)
return o.text(i) end))

--- oil.match_state has a default
return drawn(cru.oil.match_state('z', { a = cru.oil.text('a'), _ = cru.oil.text('d') }))

--- oil.markup reads tags and refuses what is no markup
return drawn(cru.oil.markup('<div><b>x</b></div>')) and fails(function() cru.oil.markup('<div>x') end)

--- oil nodes have methods that give new nodes
return drawn(cru.oil.text('x'):with_style { bold = true }:with_padding(1):with_border('double'):with_margin(1))

--- A colour that is none raises
return fails(function() cru.oil.text('x', { fg = 'nocolour' }) end) and drawn(cru.oil.text('x', { fg = '#ff0000' })) and drawn(cru.oil.text('x', { fg = 'rgb(1,2,3)' }))

--- oil.component merges props over its defaults
local c = cru.oil.component(function(p) return cru.oil.text(p.a .. p.b) end, { a = '1', b = '2' })
return drawn(c { b = '3' })

--- oq.parse finds the format
return oq.parse('{"a": 1}').a == 1 and oq.parse('---\na: 1').a == 1 and oq.parse('[s]\na = 1').s.a == 1

--- oq.detect names it
return oq.detect('[1]') == 'json' and oq.detect('[s]') == 'toml' and oq.detect('- a') == 'yaml' and oq.detect('a: 1') == 'toon' and oq.detect('plain') == 'json'

--- oq.parse_as raises for an unknown format
return fails(function() oq.parse_as('x', 'xml') end, 'Unknown format: xml')

--- oq.query gives the one result, or a list
return oq.query({ a = { 1, 2 } }, '.a | length') == 2 and same(oq.query({ 1, 2 }, '.[]'), { 1, 2 }) and #oq.query({}, 'empty') == 0

--- oq.toon writes lists of scalars and of objects
return oq.toon({ k = { 'a', 'b' } }) == 'k[2]: a,b' and oq.toon({ k = { { id = 1 }, { id = 2 } } }):find('k%[2%]{id}:') ~= nil

--- oq.json, json_pretty, yaml and toml write
return oq.json({ a = 1 }) == '{"a":1}' and oq.json_pretty({ a = 1 }):find('\n') ~= nil and oq.yaml({ a = 1 }):find('a: 1') ~= nil and oq.toml({ a = 1 }):find('a = 1') ~= nil
