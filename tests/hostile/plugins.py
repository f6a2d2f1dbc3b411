"""What hostile plugins do within cru's own process, as rows: a piece of code that runs when a prompt arrives.

`N` is how many of a thing a plugin asks for.
"""

from __future__ import annotations

from msgspec import Struct

N = 100_000
BIG = 100_000_000


class PluginRow(Struct, frozen=True):
    """lua, python: the code; "": this language has nothing of the kind
    told: what standard error says of it, one of several texts
    codes: the exit statuses that cru may end with
    short: whether it stands for its like in `make test`
    is_defect: what it did to the interpreter may come out as a traceback; everything else must hold
    """

    lua: str = ""
    python: str = ""
    told: tuple[str, ...] = ()
    codes: tuple[int, ...] = (0,)
    short: bool = False
    is_defect: bool = False


def repeated(call: str, told: tuple[str, ...] = (), *, short: bool = False, count: int = N) -> PluginRow:
    """The same call many times in both languages."""
    lua = f"for i = 1, {count} do {call.replace('FN', 'function() end')} end"
    python = f"for i in range({count}): {call.replace('FN', 'lambda *_: None')}"
    return PluginRow(lua, python, told, short=short)


MANY: dict[str, PluginRow] = {
    "spawns": repeated("cru.spawn(FN)", told=("run beside everything else already",), short=True),
    "spawns that wait": PluginRow(
        lua=f"for i = 1, {N} do cru.spawn(function() cru.timer.sleep(60) end) end",
        python=f"async def wait(): await cru.timer.sleep(60)\nfor i in range({N}): cru.spawn(wait)", told=("run beside everything else already",), short=True,
    ),
    "spawns that spawn": PluginRow(
        lua="local function again() cru.spawn(again) cru.spawn(again) end again()",
        python="def again(): cru.spawn(again); cru.spawn(again)\nagain()", told=("run beside everything else already",),
    ),
    "one that spawns itself for ever": PluginRow(
        lua="local function again() cru.spawn(again) end again()", python="def again(): cru.spawn(again)\nagain()",
    ),
    "schedules": repeated("cru.schedule(60, FN)", told=("schedules are live",), short=True),
    "handlers": repeated('cru.on("turn:complete", FN)'),
    "handlers of an event of its own": repeated('cru.on("mine", FN)'),
    "listeners": PluginRow(
        lua='local e = cru.emitter.new() for i = 1, 20000 do e:on("x", function() end) end e:emit("x")',
        python=f"e = cru.emitter.new()\nfor i in range({N}): e.on('x', lambda: None)\nawait e.emit('x')", short=True,
    ),
    "events of its own": PluginRow(
        lua=f'cru.on("mine", function() end) for i = 1, {N} do ctx:emit("mine", {{i}}) end',
        python=f"cru.on('mine', lambda *_: None)\nfor i in range({N}): await ctx.emit('mine', [i])", told=("more than 10000 events",),
    ),
    "events that raise themselves": PluginRow(
        lua='cru.on("mine", function(ctx) ctx:emit("mine") ctx:emit("mine") end) ctx:emit("mine")',
        python="async def again(ctx, event):\n    await ctx.emit('mine')\n    await ctx.emit('mine')\ncru.on('mine', again)\nawait ctx.emit('mine')",
        told=("deep", "more than"),
    ),
    "notices": repeated('cru.notify("x")'),
    "different notices": PluginRow(lua=f"for i = 1, {N} do cru.notify('x' .. i) end", python=f"for i in range({N}): cru.notify(f'x{{i}}')"),
    "log lines": repeated('cru.log("warn", "x")'),
    "changes of its state": repeated('cru.state.set("x", i)', count=1000),
    "states": PluginRow(lua="for i = 1, 1000 do cru.state.set('x' .. i, i) end", python="for i in range(1000): cru.state.set(f'x{i}', i)"),
    "buckets": repeated("cru.ratelimit.new()"),
    "prints": repeated('print("x")'),
    "errors": PluginRow(
        lua=f'local e = cru.emitter.new() e:on("x", function() error("no") end) for i = 1, {N} do e:emit("x") end',
        python=f"def no(): raise ValueError\ne = cru.emitter.new()\ne.on('x', no)\nfor i in range({N}): await e.emit('x')", told=("no", "ValueError"),
    ),
    "timers": PluginRow(
        python=f"for i in range({N}): asyncio.get_running_loop().call_later(0.001, lambda: None)",
    ),
    "tasks": PluginRow(python=f"for i in range({N}): asyncio.create_task(asyncio.sleep(60))"),
    "injects": PluginRow(
        lua='for i = 1, 1000 do cru.on("turn:complete", function() return {inject = {content = "x"}} end) end',
        python="for i in range(1000): cru.on('turn:complete', lambda *_: {'inject': {'content': 'x'}})",
        codes=(0, 3),
    ),
    "threads": PluginRow(
        python="import threading\nfor i in range(5000): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
    ),
}  # fmt: skip

LARGE: dict[str, PluginRow] = {
    "an answer of 100 MB": PluginRow(
        lua=f"return {{content = string.rep('x', {BIG})}}", python=f"return {{'content': 'x' * {BIG}}}",
        told=("16,000,000 characters are too many", "not enough memory"), short=True,
    ),
    "a context of 100 MB": PluginRow(lua=f"return {{context = string.rep('x', {BIG})}}", python=f"return {{'context': 'x' * {BIG}}}"),
    "a million contexts": PluginRow(
        lua="local t = {} for i = 1, 1000000 do t[i] = 'x' end return {context = t}", python="return {'context': ['x'] * 1_000_000}"
    ),
    "a reason of 100 MB": PluginRow(
        lua=f"return {{cancel = true, reason = string.rep('x', {BIG})}}", python=f"return {{'cancel': True, 'reason': 'x' * {BIG}}}", codes=(0, 3)
    ),
    "a notice of 100 MB": PluginRow(lua=f"cru.notify(string.rep('x', {BIG}))", python=f"cru.notify('x' * {BIG})"),
    "an error of 100 MB": PluginRow(lua=f"error(string.rep('x', {BIG}))", python=f"raise ValueError('x' * {BIG})"),
    "a state of 100 MB": PluginRow(lua=f"cru.state.set('x', string.rep('x', {BIG}))", python=f"cru.state.set('x', 'x' * {BIG})"),
    "an event of 100 MB": PluginRow(
        lua=f"cru.on('mine', function() end) ctx:emit('mine', string.rep('x', {BIG}))",
        python=f"cru.on('mine', lambda *_: None)\nawait ctx.emit('mine', 'x' * {BIG})",
    ),
    "a deep table": PluginRow(
        lua="local t = {} for i = 1, 100000 do t = {t} end return {context = t}",
        python="t = []\nfor i in range(100_000): t = [t]\nreturn {'context': t}", told=("context", "deep", "Recursion"),
    ),
    "all memory that there is": PluginRow(
        lua="local t = {} while true do t[#t + 1] = string.rep('x', 1000000) .. #t end",
        python="resource.setrlimit(resource.RLIMIT_AS, (4 << 30, -1))\nt = []\nwhile True: t.append(bytearray(100 << 20))", told=("memory", "MemoryError", "ran longer"),
    ),
    "10,000 descriptors": PluginRow(
        lua="local t = {} for i = 1, 10000 do t[i] = io.open('/dev/null') end _G.kept = t",
        python="global kept\nkept = []\nwhile True: kept.append(open('/dev/null'))", told=("",), codes=(0, 1), short=True,
    ),
    "a name of 1 MB": PluginRow(lua="cru.on(string.rep('x', 1000000), function() end)", python="cru.on('x' * 1_000_000, lambda *_: None)"),
    "NUL and no UTF-8": PluginRow(lua=r"return {content = 'a\0b\xff\xfe'}", python=r"return {'content': 'a\0b\udcff'}"),
}  # fmt: skip

PROCESS: dict[str, PluginRow] = {
    "changes the folder": PluginRow(python="os.chdir('/')", short=True),
    "removes the folder": PluginRow(python="import shutil; shutil.rmtree(os.getcwd())"),
    "changes the umask": PluginRow(python="os.umask(0o777)", short=True),
    "takes the umask away": PluginRow(python="os.umask(0)"),
    "changes handlers of signals": PluginRow(
        python="import signal\nfor n in (2, 15, 1): signal.signal(n, signal.SIG_IGN)"
    ),
    "takes the wakeup of signals": PluginRow(python="import signal; signal.set_wakeup_fd(-1)"),
    "limits descriptors": PluginRow(python="resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))", codes=(0, 1)),
    "limits files": PluginRow(python="resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))", codes=(1,), told=("File too large",), short=True),
    "limits processes": PluginRow(python="resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))"),
    "limits memory": PluginRow(python="resource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20))", codes=(0, 1), short=True),
    "limits time": PluginRow(python="resource.setrlimit(resource.RLIMIT_CPU, (1, 2))\nwhile True: pass", codes=(-24, -9, 152), told=("",)),
    "limits the stack": PluginRow(python="sys.setrecursionlimit(50)", codes=(0, 1)),
    "empties the environment": PluginRow(python="os.environ.clear()"),
    "closes all descriptors": PluginRow(python="os.closerange(3, 4096)", codes=(1,), told=("cru: ",)),
    "closes the standard ones": PluginRow(python="os.closerange(0, 3)", codes=(0, 1)),
    "switches the collector off": PluginRow(python="import gc; gc.disable()"),
    "traces every line": PluginRow(python="sys.settrace(lambda *_: None); sys.setprofile(lambda *_: None)"),
    "forks": PluginRow(python="if os.fork() == 0: time.sleep(0.2)"),
    "kills itself": PluginRow(python="os.kill(os.getpid(), 9)", codes=(-9,), told=("",)),
    "aborts": PluginRow(python="os.abort()", codes=(-6,), told=("",)),
    "ends by a fault": PluginRow(python="import ctypes; ctypes.string_at(0)", codes=(-11,), told=("",)),
    "exits at once": PluginRow(python="os._exit(7)", codes=(7,), told=("",), short=True),
    "becomes another program": PluginRow(python="os.execv('/bin/true', ['true'])", codes=(0,), told=("",)),
    "asks itself to end": PluginRow(python="os.kill(os.getpid(), 15)", codes=(143,), told=("",)),
    "replaces functions of os": PluginRow(
        python="def no(*a, **k): raise OSError(5, 'no')\nos.write = os.open = os.fsync = os.replace = no", codes=(0, 1), told=("",)
    ),
    "replaces functions of asyncio": PluginRow(python="asyncio.sleep = asyncio.wait = asyncio.gather = None", codes=(0, 1), told=("",), is_defect=True),
    "replaces functions of cru": PluginRow(
        python="import cru.core.conversations.log as log\nlog.write_all = lambda fd, data: None", codes=(0, 1), told=("",), is_defect=True
    ),
    "replaces the decoder": PluginRow(python="import msgspec; msgspec.json.decode = None", codes=(0, 1), told=("",), is_defect=True),
    "stops the loop": PluginRow(python="asyncio.get_running_loop().stop()", told=("event loop",)),
    "closes the loop": PluginRow(python="asyncio.get_running_loop().close()", told=("",), codes=(0, 1)),
    "cancels all tasks": PluginRow(python="for t in asyncio.all_tasks(): t.cancel()", codes=(0, 130), told=("",)),
    "blocks": PluginRow(python="time.sleep(1)", told=("everything else waited",)),
    "opens a shell": PluginRow(lua="os.execute('true') io.popen('sleep 600')"),
}  # fmt: skip

RAISED = (
    "BaseException",
    "SystemExit(3)",
    "KeyboardInterrupt",
    "MemoryError",
    "GeneratorExit",
    "StopIteration",
    "RecursionError",
    "StopAsyncIteration",
)
RAISES: dict[str, PluginRow] = {
    **{f"raises {name}": PluginRow(python=f"raise {name}", told=(name.partition("(")[0],)) for name in RAISED},
    "recursion": PluginRow(
        lua="local function f() return 1 + f() end f()", python="def f(): return 1 + f()\nf()", told=("stack overflow", "RecursionError", "bad.lua")
    ),
    "recursion through cru": PluginRow(
        lua="local function f() cru.retry(f, {max_retries = 0}) end f()", python="async def f(): await cru.retry(f, {'max_retries': 0})\nawait f()",
        told=("deep", "RecursionError", "bad.lua"),
    ),
    "a loop": PluginRow(lua="while true do end", told=("ran longer",)),
    "a loop in a pattern": PluginRow(lua="string.find(string.rep('a', 100000), string.rep('a-', 100) .. 'b')", told=("",)),
    "a loop beside": PluginRow(lua="cru.spawn(function() while true do end end)", python="", told=("ran longer",)),
    "a wait without end": PluginRow(lua="cru.spawn(function() while true do cru.timer.sleep(0) end end)", python=(
        "async def spin():\n    while True: await asyncio.sleep(0)\ncru.spawn(spin)")),
}  # fmt: skip

PLUGIN_ROWS: dict[str, PluginRow] = {**MANY, **LARGE, **PROCESS, **RAISES}
