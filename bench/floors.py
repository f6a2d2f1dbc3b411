#!/usr/bin/env python3
"""floors.py - what the machine itself costs.  Run: py/floors/bin/python floors.py (in the netns: unshare -n ... as run_peer does)"""
import asyncio, http.client, json, os, statistics as st, subprocess, sys, time
B = os.environ.get('BENCH_HOME') or os.path.expanduser('~/.cache/cru-bench'); HERE = os.path.dirname(os.path.abspath(__file__)); PORT = 18081
if not os.environ.get('BENCH_NETNS'):
    os.execvpe('unshare', ['unshare', '-n' if os.getuid() == 0 else '-rn', sys.executable] + sys.argv, {**os.environ, 'BENCH_NETNS': '1'})
subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
R = {}
def rep(name, ts):
    ts = sorted(x * 1e3 for x in ts)
    R[name] = {'min': round(ts[0], 3), 'median': round(st.median(ts), 3), 'p90': round(ts[int(len(ts) * .9)], 3), 'n': len(ts)}
    print(f'{name:58s} min {ts[0]:8.3f}  median {st.median(ts):8.3f}  p90 {ts[int(len(ts)*.9)]:8.3f} ms', flush=True)
def loop(name, f, n=200, warm=5):
    for _ in range(warm): f()
    ts = []
    for _ in range(n):
        t = time.perf_counter(); f(); ts.append(time.perf_counter() - t)
    rep(name, ts)
E_ = {'PATH': '/usr/bin:/bin', 'HOME': '/nonexistent', 'LANG': 'C.UTF-8'}
def spawn(argv):
    pid = os.posix_spawn(argv[0], argv, E_); os.waitpid(pid, 0)
loop('os.posix_spawn /bin/true + waitpid', lambda: spawn(['/bin/true']))
loop('subprocess.Popen /bin/true (defaults)', lambda: subprocess.Popen(['/bin/true'], env=E_).wait())
loop('subprocess.Popen /bin/true close_fds=False', lambda: subprocess.Popen(['/bin/true'], env=E_, close_fds=False).wait())
loop('subprocess.run capture_output /bin/true', lambda: subprocess.run(['/bin/true'], env=E_, capture_output=True))
loop('posix_spawn sh -c true (dash)', lambda: spawn(['/bin/sh', '-c', 'true']))
loop('posix_spawn bash -c true', lambda: spawn(['/bin/bash', '-c', 'true']))
loop('posix_spawn bash -lc true', lambda: spawn(['/bin/bash', '-lc', 'true']))
async def aio():
    async def go(name, f, n=200):
        for _ in range(5): await f()
        ts = []
        for _ in range(n):
            t = time.perf_counter(); await f(); ts.append(time.perf_counter() - t)
        rep(name, ts)
    async def ex():
        p = await asyncio.create_subprocess_exec('/bin/true', env=E_); await p.wait()
    async def exc():
        p = await asyncio.create_subprocess_exec('/bin/true', env=E_, stdout=-1, stderr=-1, stdin=-3); await p.communicate()
    async def shc():
        p = await asyncio.create_subprocess_shell('true', env=E_, stdout=-1, stderr=-2, stdin=-3); await p.communicate()
    await go('asyncio.create_subprocess_exec /bin/true', ex)
    await go('asyncio.create_subprocess_exec /bin/true, pipes, communicate', exc)
    await go('asyncio.create_subprocess_shell true, pipes, communicate', shc)
asyncio.run(aio())
for v, p in (('this python', sys.executable),):
    loop(f'{v} python -c pass', lambda: spawn([p, '-c', 'pass']), 25, 3)
    loop(f'{v} python -S -c pass', lambda: spawn([p, '-S', '-c', 'pass']), 25, 3)
    loop(f'{v} python -I -S -c pass', lambda: spawn([p, '-I', '-S', '-c', 'pass']), 25, 3)
loop('venv (py/floors, ~20 packages) -c pass', lambda: spawn([f'{B}/py/floors/bin/python', '-c', 'pass']), 25, 3)
for m in ('json', 'argparse', 'asyncio', 'http.client', 'ssl', 'urllib.request', 'subprocess', 'httpx', 'aiohttp'):
    loop(f'venv -c "import {m}"', lambda: spawn([f'{B}/py/floors/bin/python', '-c', f'import {m}']), 15, 2)
loop('node 24 -e 0', lambda: spawn([f'{B}/bin/node', '-e', '0']), 15, 2)
loop('git --version', lambda: subprocess.run(['git', '--version'], env=E_, stdout=-3), 50)
# ---- HTTP round trip to the mock
m = subprocess.Popen([f'{B}/py/floors/bin/python', f'{HERE}/mockllm.py', '--port', str(PORT)], stdout=-1, text=True); m.stdout.readline()
tools = [{'type': 'function', 'function': {'name': 'bash', 'parameters': {'type': 'object', 'properties': {'command': {'type': 'string'}}, 'required': ['command']}}}]
body = json.dumps({'model': 'mock', 'stream': True, 'tools': tools, 'messages': [{'role': 'system', 'content': 'x' * 4000}, {'role': 'user', 'content': 'go'}]}).encode()
H = {'Content-Type': 'application/json', 'Authorization': 'Bearer x'}
U = f'http://127.0.0.1:{PORT}/n/20/v1/chat/completions'
def parse(it):
    n = 0
    for l in it:
        if l.startswith(b'data: ') and l[6:7] == b'{': json.loads(l[6:]); n += 1
    assert n == 4
try:
    c = http.client.HTTPConnection('127.0.0.1', PORT)
    def hc():
        c.request('POST', '/n/20/v1/chat/completions', body, H); r = c.getresponse(); parse(r)
    loop('http.client keep-alive: POST 4 KB, stream 4 events, parse', hc, 500)
    import httpx
    with httpx.Client() as hx:
        def f():
            with hx.stream('POST', U, content=body, headers=H) as r: parse(l.encode() for l in r.iter_lines())
        loop('httpx.Client keep-alive, same', f, 500)
    def cold():
        with httpx.Client() as h2:
            with h2.stream('POST', U, content=body, headers=H) as r: parse(l.encode() for l in r.iter_lines())
    loop('httpx.Client new client each time (TLS context built)', cold, 10, 1)
    async def ah():
        async with httpx.AsyncClient() as h3:
            ts = []
            for i in range(520):
                t = time.perf_counter()
                async with h3.stream('POST', U, content=body, headers=H) as r:
                    async for l in r.aiter_lines():
                        if l.startswith('data: {'): json.loads(l[6:])
                if i > 19: ts.append(time.perf_counter() - t)
            rep('httpx.AsyncClient keep-alive, same', ts)
        import aiohttp
        async with aiohttp.ClientSession() as s:
            ts = []
            for i in range(520):
                t = time.perf_counter()
                async with s.post(U, data=body, headers=H) as r:
                    async for l in r.content:
                        if l.startswith(b'data: {'): json.loads(l[6:])
                if i > 19: ts.append(time.perf_counter() - t)
            rep('aiohttp keep-alive, same', ts)
        rd, wr = await asyncio.open_connection('127.0.0.1', PORT); ts = []
        q = (f'POST /n/20/v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n').encode() + body
        for i in range(520):
            t = time.perf_counter(); wr.write(q)
            h = await rd.readuntil(b'\r\n\r\n')
            while True:
                n = int(await rd.readline(), 16); d = await rd.readexactly(n + 2)
                if n == 0: break
                parse(d.split(b'\n'))
            if i > 19: ts.append(time.perf_counter() - t)
        rep('raw asyncio streams, same', ts)
        ev = json.loads(__import__('urllib.request').request.urlopen(f'http://127.0.0.1:{PORT}/_ctl/events').read())
        rep('  of which inside the mock (t_send - t_first)', [(e['t_send'] - e['t_first']) / 1e9 for e in ev[-500:]])
    asyncio.run(ah())
finally:
    m.terminate(); m.wait()
R['loadavg'] = os.getloadavg()
out = sys.argv[1] if len(sys.argv) > 1 else f'{B}/floors.json'
json.dump(R, open(out, 'w'), indent=1)
