"""What is wrong in a plugin stays in the plugin: it is told on standard error, nothing is lost, and the turn goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.kit import Call, Done, HomeDir, Received, Reply, cru, home, server

GOOD = 'cru.on("turn:complete", function() cru.toast("the good one runs") end)'
BIG = 10_000_000


def run(tmp_path: Path, plugins: dict[str, str], *replies: Reply) -> tuple[Done, HomeDir, list[Received]]:
    """One turn with these plugins (file name → source) and a good one beside them."""
    with server(replies or (Reply("all is well"),)) as model:
        here = home(tmp_path)
        here.configure('mode = "trust"\n', model.url)
        (here.cru / "plugins").mkdir()
        for name, source in {**plugins, "zz_good.lua": GOOD}.items():
            (here.cru / "plugins" / name).write_text(source)
        done = cru("hello", home=here)
    assert (done.code, done.out) == (0, "all is well\n"), done
    assert "the good one runs" in done.err
    assert [e["content"] for e in here.log() if e.get("role") == "user" and e["entry_type"] == "message"] == ["hello"]
    return done, here, model.requests


def told(tmp_path: Path, plugins: dict[str, str], *replies: Reply) -> str:
    return run(tmp_path, plugins, *replies)[0].err


# name → (file, source, what is said)
NOT_LOADED: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "a syntax error in Lua": ("bad.lua", "local x = 1\nlocal y = = 2\n", ("bad.lua:2:", "unexpected symbol near '='")),
    "a syntax error in Python": ("bad.py", "x = 1\ny = = 2\n", ("bad.py:2", "SyntaxError")),
    "an error while loading Lua": ("bad.lua", "\nerror('broken')", ("bad.lua:2", "broken")),
    "an error while loading Python": ("bad.py", "\nraise ValueError('broken')", ("bad.py:2", "ValueError: broken")),
    "an exit while loading Python": ("bad.py", "import sys\nsys.exit(3)", ("bad.py:2", "SystemExit")),
    "an annotation without an event": (
        "bad.lua", "-- @handler priority=5\nfunction f() end", ("bad.lua:1", "no event"),
    ),
    "an unknown field of an annotation": (
        "bad.lua", '\n-- @handler event="turn:complete" priorty=5\nfunction f() end', ("bad.lua:2", "priorty", "priority"),
    ),
    "an annotation above nothing": (
        "bad.lua", '-- @handler event="turn:complete"\nlocal x = 1', ("bad.lua:1", "stands above no function"),
    ),
    "wrong argument types in Lua": ("bad.lua", "cru.on(5, 6)", ("bad.lua:1", "name of an event")),
    "wrong argument types in Python": ("bad.py", "from cru import on\non(5, 6)", ("bad.py:2", "name of an event")),
    "no function in Lua": ("bad.lua", 'cru.on("turn:complete")', ("bad.lua:1", "no function")),
    "an unknown option": (
        "bad.lua", 'cru.on("turn:complete", function() end, {priorty = 1})', ("bad.lua:1", "priorty", "priority"),
    ),
    "an unknown name in Python": ("bad.py", "import cru\ncru.state.gett('x')", ("bad.py:2", "state.get")),
    "an unknown name in Lua": ("bad.lua", "\ncru.state.gett('x')", ("bad.lua:2", "gett")),
    "a loop that never ends": ("bad.lua", "while true do end", ("bad.lua:1", "ran longer than 1 s")),
    "recursion that never ends": ("bad.lua", "local function f() return 1 + f() end\nf()", ("bad.lua:1",)),  # by stack or by time
    "an error that is a table": ("bad.lua", "error({code = 7})", ("an error object that is a table with keys code",)),
    "an error that is nil": ("bad.lua", "error(nil)", ("nil",)),
    "tools that are no table in Lua": ("bad.lua", "return {tools = 5}", ("tools", "table")),
    "tools that are no table in Python": ("bad.py", "TOOLS = 5", ("tools", "table")),
    "a setup that fails in Lua": ("bad.lua", "return {setup = function()\nerror('no oil') end}", ("bad.lua:2", "no oil")),
    "a setup that fails in Python": ("bad.py", "def setup(cru):\n    raise ValueError('no oil')", ("bad.py:2", "no oil")),
    "a parameter that cannot be read": ("bad.lua", "-- @tool\n-- @param\nfunction f() end", ("bad.lua:2", "@param")),
    "a priority that is no number": (
        "bad.lua", '-- @handler event="turn:complete" priority=high\nfunction f() end', ("bad.lua:1", "priority", "high"),
    ),
    "a module that is missing in Lua": ("bad.lua", "\nrequire('no_such_module')", ("bad.lua:2", "no_such_module")),
    "a module that is missing in Python": ("bad.py", "\nimport no_such_module", ("bad.py:2", "no_such_module")),
    "no text at all in Lua": ("bad.lua", "\0\1\2", ("bad.lua",)),
    "no text at all in Python": ("bad.py", "x = 1\0", ("bad.py",)),
    "a wait outside of any function": ("bad.lua", "coroutine.yield(1)", ("yield",)),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("what", NOT_LOADED)
def test_it_is_not_loaded_and_says_why(tmp_path: Path, what: str) -> None:
    name, source, words = NOT_LOADED[what]
    err = told(tmp_path, {name: source})
    assert "plugin bad is not loaded" in err
    assert [word for word in words if word not in err] == [], err


def handler(body: str) -> str:
    return f'cru.on("message:received", function(ctx, event)\n{body}\nend)'


# name → (the body of a handler of message:received, what is said)
FAILING: dict[str, tuple[str, tuple[str, ...]]] = {
    "it returns a number": ("return 5", ("bad", "5", "a table or nil is understood")),
    "it returns a text": ("return 'x'", ("bad", "a table or nil is understood")),
    "an inject without content": ("return {inject = {position = 'user_prefix'}}", ("bad.lua:1", "inject without content")),
    "a table that holds itself": ("local t = {} t.t = t return t", ("bad.lua", "contains itself")),
    "it calls nothing": ("local x = nil x()", ("bad.lua:2", "attempt to call a nil value")),
    "an error that is a table": ("error({code = 7})", ("bad.lua", "an error object that is a table with keys code")),
    "an error that is a table with a message": ("error({message = 'out of paper'})", ("bad.lua", "out of paper")),
    "an error that is a number": ("error(7)", ("bad.lua", "7")),
    "an error that is nil": ("error()", ("bad.lua", "nil")),
    "recursion that never ends": ("local function f() return 1 + f() end return f()", ("bad.lua:2",)),
    "a loop that never ends": ("while true do end", ("bad.lua", "ran longer than 1 s")),
    "a wrong type in a field": ("return {type = event.type, content = {1}}", ("bad.lua:1", "content")),
    "a key that is no data": ("return {[{}] = 1}", ("bad.lua", "as key is no data")),
    "a wrong argument": ("cru.fs.read({})", ("bad.lua:2", "cru.fs.read", "string")),
    "a table too deep": ("local t = {} for i = 1, 100000 do t = {t = t} end return t", ("bad.lua", "deeper than 100 levels")),
    "an error that cannot be shown": (
        "error(setmetatable({}, {__tostring = function() error('again') end}))", ("bad.lua", "an empty table, whose __tostring fails"),
    ),
    "an error that is a function": ("error(print)", ("bad.lua", "function")),
    "more memory than there is": ("local t = string.rep('x', 300 * 1024 * 1024)", ("bad.lua", "not enough memory")),
    "it yields": ("coroutine.yield(5)", ("bad.lua", "yield")),
    "state that is no data": ("cru.state.set('f', function() end)", ("bad.lua:2", "is not data")),
}  # fmt: skip


@pytest.mark.sample(4)
@pytest.mark.parametrize("what", FAILING)
def test_a_handler_that_fails_changes_nothing(tmp_path: Path, what: str) -> None:
    body, words = FAILING[what]
    done, _, requests = run(tmp_path, {"bad.lua": handler(body)})
    assert [word for word in words if word not in done.err] == [], done.err
    assert requests[0].body["messages"][-1]["content"] == "hello"


PYTHON_BODIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "it raises": ("raise ValueError('broken')", ("bad.py:3", "ValueError: broken")),
    "it exits": ("import sys; sys.exit(3)", ("bad.py:3", "SystemExit")),
    "it returns a number": ("return 5", ("a table or nil is understood",)),
    "an inject without content": ("return {'inject': {}}", ("inject without content",)),
    "recursion that never ends": ("return on_message(ctx, event)", ("RecursionError",)),
    "it raises what is no Exception": ("raise BaseException('base')", ("bad.py:2", "base")),
    "it stops an iteration": ("raise StopIteration", ("bad.py:3", "StopIteration")),
    "it cancels itself": ("import asyncio; raise asyncio.CancelledError", ("bad.py:3", "CancelledError")),
    "it interrupts": ("raise KeyboardInterrupt", ("bad.py:3", "KeyboardInterrupt")),
    "bytes in a table": ("return {'handled': True, 'result': {'a': [b'x']}}", ("`result` holds bytes",)),
    "it returns a list": ("return [1]", ("a table or nil is understood",)),
    "it returns an object": ("return object()", ("a table or nil is understood",)),
    "it is a generator": ("yield 5", ("a table or nil is understood",)),
    "a set as text": ("return {'content': {1, 2}}", ("content",)),
    "state that holds itself": ("import cru; t = {}; t['t'] = t; cru.state.set('t', t)", ("bad.py:3", "holds itself")),
    "a wrong argument": ("import cru; cru.fs.read({})", ("bad.py:3", "cru.fs.read", "string")),
    "a wrong type in a field": ("event['content'] = [1]; return event", ("content",)),
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("what", PYTHON_BODIES)
def test_a_handler_in_python_that_fails_changes_nothing(tmp_path: Path, what: str) -> None:
    body, words = PYTHON_BODIES[what]
    source = f"from cru import on\ndef on_message(ctx, event):\n    {body}\non('message:received', on_message)\n"
    done, _, requests = run(tmp_path, {"bad.py": source})
    assert [word for word in words if word not in done.err] == [], done.err
    assert requests[0].body["messages"][-1]["content"] == "hello"


def test_bytes_are_no_text(tmp_path: Path) -> None:
    source = "from cru import on\non('message:received', lambda ctx, event: {'content': b'x'})\n"
    done, _, requests = run(tmp_path, {"bad.py": source})
    assert "content" in done.err
    assert requests[0].body["messages"][-1]["content"] == "hello"


def test_leaving_a_generator_that_is_none_is_a_failure(tmp_path: Path) -> None:
    source = "from cru import on\ndef f(ctx, event):\n    raise GeneratorExit\non('message:received', f)\n"
    assert "GeneratorExit" in told(tmp_path, {"bad.py": source})


RAISED = ("SystemExit", "KeyboardInterrupt", "GeneratorExit", "asyncio.CancelledError", "BaseException")


@pytest.mark.parametrize("raised", RAISED)
def test_nothing_that_is_raised_in_python_ends_the_run(tmp_path: Path, raised: str) -> None:
    """Raised by hand, after a wait, beside the turn, at the end, and while it is loaded."""
    late = (
        f"import asyncio, cru\nasync def late(*_):\n    await asyncio.sleep(0)\n    raise {raised}\n"
        "cru.on('message:received', late)\ncru.spawn(late)\n"
        f"def soon():\n    raise {raised}\ncru.spawn(soon)\nteardown = late\n"
    )
    err = told(tmp_path, {"late.py": late, "load.py": f"import asyncio\nraise {raised}"})
    name = raised.removeprefix("asyncio.")
    assert "plugin load is not loaded" in err and f"load.py:2: {name}" in err
    assert "late: spawned function:" in err and f"late.py:4: {name}" in err and f"late.py:8: {name}" in err
    assert "failed on message:received" in err and "on_unload" in err


TYPOS: dict[str, tuple[str, str, str]] = {
    "a field in Lua": ("lua", "return {contnt = 'x'}", "bad.lua:1): returned `contnt`"),
    "a word in Lua": ("lua", "return {cancle = true}", "did you mean `cancel`?"),
    "a word that comes first": ("lua", "return {cancel = true, reson = 'x'}", "did you mean `reason`?"),
    "text that was to be added": ("lua", "return {contxt = 'x'}", "did you mean `context`?"),
    "in the event in Lua": ("lua", "event.contnt = 'x' return event", "did you mean `content`?"),
    "a field in Python": ("py", "return {'contnt': 'x'}", "bad.py:2): returned `contnt`"),
    "in the event in Python": ("py", "event['contnt'] = 'x'; return event", "did you mean `content`?"),
}


@pytest.mark.parametrize("what", TYPOS)
def test_a_misspelt_key_is_told_with_what_was_meant(tmp_path: Path, what: str) -> None:
    language, body, said = TYPOS[what]
    python = f"from cru import on\ndef f(ctx, event):\n    {body}\non('message:received', f)\n"
    with server((Reply("one"), Reply("two"))) as model:
        here = home(tmp_path)
        here.configure("", model.url)
        (here.cru / "plugins").mkdir()
        (here.cru / "plugins" / f"bad.{language}").write_text(handler(body) if language == "lua" else python)
        done = cru("hello", home=here)
    assert "which means nothing on message:received" in done.err
    assert said in done.err


def test_a_misspelt_key_is_told_once(tmp_path: Path) -> None:
    adds = 'cru.on("tool:completed", function() cru.timer.sleep(0) return {contxt = "x"} end)'
    call = Call("bash", {"command": "true"})
    assert told(tmp_path, {"bad.lua": adds}, Reply(calls=(call, call)), Reply("all is well")).count("`contxt`") == 1


def test_an_async_handler_may_return_nothing(tmp_path: Path) -> None:
    source = "from cru import on, toast\nasync def f(ctx, event):\n    toast('was here')\non('message:received', f)\n"
    err = told(tmp_path, {"quiet.py": source})
    assert "was here" in err and "failed" not in err


@pytest.mark.parametrize("key", ["note = 'x'", "task = true and 'x'", "lines = {1}", "[1] = 'x'", "reason = 'x'"])
def test_other_keys_stay_silent(tmp_path: Path, key: str) -> None:
    assert "means nothing" not in told(tmp_path, {"bad.lua": handler(f"return {{{key}}}")})


def test_an_unknown_event_is_told_with_its_place_and_the_closest_name(tmp_path: Path) -> None:
    err = told(tmp_path, {"bad.lua": '\ncru.on("turn:complet", function() end)'})
    assert "bad.lua:2" in err
    assert "did you mean `turn:complete`?" in err
    annotated = '\n-- @handler event="turn:complet"\nfunction f() end'
    (tmp_path / "again").mkdir()
    err = told(tmp_path / "again", {"bad.lua": annotated})
    assert "bad.lua:2" in err
    assert "did you mean `turn:complete`?" in err


def test_a_guard_that_fails_denies_the_call_and_says_whose_it_is(tmp_path: Path) -> None:
    guard = 'cru.on("tool:before_call", function(ctx, event)\n  error("no idea")\nend)'
    replies = (Reply(calls=(Call("bash", {"command": "echo ran > ran.txt"}),)), Reply("all is well"))
    done, here, requests = run(tmp_path, {"bad.lua": guard}, *replies)
    assert "bad.lua:2: no idea" in done.err
    assert "the handler of bad failed" in requests[1].body["messages"][-1]["content"]
    assert not (here.project / "ran.txt").exists()


@pytest.mark.parametrize("name", ["bad.lua", "bad.py"])
def test_a_tool_that_fails_is_a_failed_call(tmp_path: Path, name: str) -> None:
    sources = {
        "bad.lua": "return {tools = {mend = {desc = 'x', fn = function(args)\n  error('no glue')\nend}}}",
        "bad.py": "def mend(args):\n    raise ValueError('no glue')\nTOOLS = {'mend': {'desc': 'x', 'fn': mend}}",
    }
    replies = (Reply(calls=(Call("mend"),)), Reply("all is well"))
    _, _, requests = run(tmp_path, {name: sources[name]}, *replies)
    assert "no glue" in requests[1].body["messages"][-1]["content"]


LONG = {
    "long.lua": f'local long = string.rep("x", {BIG})\n'
    'cru.on("message:received", function() return {context = long} end)\n'
    'return {tools = {long = {desc = "x", fn = function() return long end}}}',
    "long.py": f'import cru\nlong = "x" * {BIG}\n'
    'cru.on("message:received", lambda ctx, event: {"context": long})\n'
    'TOOLS = {"long": {"desc": "x", "fn": lambda args: long}}',
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_of_ten_megabytes_a_part_reaches_the_model_as_context_and_all_the_disk_as_a_result(
    tmp_path: Path, name: str
) -> None:
    _, here, requests = run(tmp_path, {name: LONG[name]}, Reply(calls=(Call("long"),)), Reply("all is well"))
    sent = requests[0].body["messages"][-1]["content"]
    assert sent.count("x") == 1 << 20 and sent.endswith("\n[… 8,951,424 more characters of a handler are left out]")
    assert len(requests[1].body["messages"][-1]["content"]) < BIG
    assert max(file.stat().st_size for file in (here.context() / "tool_cache").iterdir()) >= BIG


def test_ten_megabytes_come_through_whole(tmp_path: Path) -> None:
    body = (
        f'local text = string.rep("x", {BIG})\ncru.state.set("big", text)\ncru.toast("kept " .. #cru.state.get("big"))'
    )
    done, here, _ = run(tmp_path, {"big.lua": handler(body)})
    assert f"kept {BIG}" in done.err
    assert (here.context() / "plugin-state.json").stat().st_size > BIG


def test_a_global_of_one_plugin_is_not_one_of_another(tmp_path: Path) -> None:
    one = 'count = 5\n_G.shared = 1\nstring.own = 1\ncru.on("turn:complete", function() cru.toast("count is " .. count) end)'
    two = 'cru.on("turn:complete", function() cru.toast("two sees " .. type(count)) end)'
    err = told(tmp_path, {"one.lua": one, "two.lua": two})
    assert "count is 5" in err
    assert "two sees nil" in err


def test_a_plugin_that_breaks_the_globals_breaks_no_handler(tmp_path: Path) -> None:
    source = "for _, name in ipairs{'pcall', 'error', 'type', 'next'} do _G[name] = nil end\nstring.format = nil"
    done, _, requests = run(tmp_path, {"aa.lua": source})
    assert requests[0].body["messages"][-1]["content"] == "hello"
    assert "not loaded" not in done.err


NEEDY = """
cru.on("turn:complete", function()
  cru.toast(("needs %d things: "):format(3) .. table.concat({#cru.fs.list("."), cru.json.encode({1})}, " "))
end)
"""


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    "source",
    [
        "cru = nil",
        "crucible = 5",
        "debug = nil",
        "package.loaded.cjson = 5\npackage.path = nil",
        "_G.cru = nil",
        "for name in pairs(_G) do rawset(_G, name, nil) end",
        "cru.on = nil",
        "cru.fs.list = nil",
        "setmetatable(cru, {__index = function() error('mine') end})",
        "table.concat = nil",
        "getmetatable('').__index = nil",
    ],
)
def test_what_a_plugin_does_to_the_globals_leaves_others_alone(tmp_path: Path, source: str) -> None:
    err = told(tmp_path, {"aa.lua": source, "needy.lua": NEEDY})
    assert "needs 3 things: 0 [1]" in err


BROKEN = {
    "state.lua": 'cru.on("message:received", function()\n'
    'cru.toast("was " .. tostring(cru.state.get("n")))\ncru.state.set("n", 1) end)',
    "state.py": "from cru import on, state, toast\ndef f(ctx, event):\n"
    '    toast("was " + ("nil" if state.get("n") is None else "1"))\n    state.set("n", 1)\non("message:received", f)',
    "storage.lua": 'cru.on("message:received", function()\n'
    'cru.toast("was " .. tostring(cru.storage.get("n", "n")))\ncru.storage.set("n", "n", 1) end)',
    "storage.py": "from cru import on, storage, toast\ndef f(ctx, event):\n"
    '    toast("was " + (storage.get("n", "n") or "nil"))\n    storage.set("n", "n", 1)\non("message:received", f)',
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_kept_beside_and_told(tmp_path: Path, name: str) -> None:
    with server((Reply("all is well"),)) as model:
        here = home(tmp_path)
        here.configure("", model.url)
        (here.cru / "plugins").mkdir()
        (here.cru / "plugins" / f"keep.{name.rpartition('.')[2]}").write_text(BROKEN[name])
        of_state = here.context() / "plugin-state.json"
        file = of_state if name.startswith("state") else here.cru / "plugin-state" / "keep" / "storage.json"
        file.parent.mkdir(parents=True)
        file.write_text('{"n": 1')
        done = cru("hello", home=here)
    assert (done.code, done.out) == (0, "all is well\n")
    assert "was nil" in done.err
    assert f"{file.name} is not understood" in done.err
    [kept] = file.parent.glob(f"{file.name}.corrupt*")
    assert kept.read_text() == '{"n": 1'
    assert file.read_text() == ('{"n":1}' if file == of_state else '{"n":{"n":"1"}}')


STAYING: dict[str, str] = {
    "a task that swallows its end": (
        "import asyncio\nfrom cru import on\nasync def stay():\n    while True:\n        try:\n            await asyncio.sleep(60)\n"
        "        except BaseException:\n            pass\non('message:received', lambda c, e: asyncio.create_task(stay()) and None)\n"
    ),
    "a thread that sleeps": (
        "import asyncio, time\nfrom cru import on\nasync def f(c, e):\n"
        "    asyncio.create_task(asyncio.to_thread(time.sleep, 100))\n    await asyncio.sleep(0)\non('message:received', f)\n"
    ),
}


@pytest.mark.parametrize("what", STAYING)
def test_what_a_plugin_leaves_running_does_not_keep_cru(tmp_path: Path, what: str) -> None:
    assert "Traceback" not in told(tmp_path, {"bad.py": STAYING[what]})
