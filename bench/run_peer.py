#!/usr/bin/env python3
"""run_peer.py - harness-overhead benchmark driver (stdlib only).  Runs everything in a network namespace
that has only a loopback (unshare -n), so peers cannot reach anything but the mock on 127.0.0.1.

  run_peer.py try   PEER [--n 3] [--hook]          one run, prints output and events
  run_peer.py bench PEER... [--reps 5] [--big 3] [--huge 1]   N=20, 200 (and 1,000); appends to results.jsonl
  run_peer.py hooks PEER... [--reps 5]             alternating with/without hook
  run_peer.py list
"""
import argparse, json, os, shutil, signal, statistics as st, subprocess, sys, threading, time, urllib.parse, urllib.request

B = os.environ.get('BENCH_HOME') or os.path.expanduser('~/.cache/cru-bench')   # peers, homes, results live here
HERE = os.path.dirname(os.path.abspath(__file__))
PORT = 18080
TLS_PORT = 18443
TLS = ''            # a folder with server.pem and server.key: the mock speaks TLS on TLS_PORT, too
CA_VARIABLES = ('SSL_CERT_FILE', 'NODE_EXTRA_CA_CERTS', 'REQUESTS_CA_BUNDLE', 'CODEX_CA_CERTIFICATE')   # by which peers trust another authority
NPM = lambda p, b: f'{B}/npm/{p}/node_modules/.bin/{b}'
PY = lambda p, b: f'{B}/py/{p}/bin/{b}'
HZ = os.sysconf('SC_CLK_TCK')
ns = time.monotonic_ns


def w(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, 'w').write(text if isinstance(text, str) else json.dumps(text, indent=1))


# ---------------- per-peer definitions ----------------
# each: setup(home, work, url, hook) writes config; cmd -> argv; env; url = http://127.0.0.1:PORT/n/<N>
class Peer:
    name = ''; ver = ['--version']; env = {}; hooks = False; multi = True; bin = ''
    def setup(self, home, work, url, hook): pass
    def cmd(self, url): raise NotImplementedError
    def environ(self, url): return {}


class Codex(Peer):
    name = 'codex'; bin = NPM('codex', 'codex'); hooks = True
    env = {'MOCK_KEY': 'x'}
    def setup(self, home, work, url, hook):
        w(f'{home}/.codex/config.toml', f'''model = "mock"
model_provider = "mock"
check_for_update_on_startup = false
[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "MOCK_KEY"
[analytics]
enabled = false
[otel]
exporter = "none"
''')
        h = f'{home}/.codex/hooks.json'
        if hook: w(h, {'hooks': {'PreToolUse': [{'matcher': '', 'hooks': [{'type': 'command', 'command': hook}]}]}})
        elif os.path.exists(h): os.remove(h)
        self._hook = hook
    def cmd(self, url):
        return [self.bin, 'exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox'] + \
               (['--dangerously-bypass-hook-trust'] if self._hook else []) + ['go']


class CodexNative(Codex):
    name = 'codex-native'
    bin = ''
    def __init__(self):
        import glob
        g = glob.glob(f'{B}/npm/codex/node_modules/@openai/codex-linux-x64/vendor/*/bin/codex') + \
            glob.glob(f'{B}/npm/codex/node_modules/@openai/codex-linux-x64/vendor/*/codex/codex')
        self.bin = g[0] if g else ''


class Cru(Peer):
    """This project, installed into its own environment by run.sh."""
    name = 'cru'; bin = PY('cru', 'cru'); hooks = True; env = {'CRU_SANDBOX': 'off'}  # no peer confines here
    def setup(self, home, work, url, hook):
        w(f'{home}/.cru/config.toml', f'api_key = "x"\nmodel = "mock"\nbase_url = "{url}/v1"\nfuel = 5000\nmax_idle_rounds = 0\n')
        h = f'{work}/crush.json'
        if hook: w(h, {'hooks': {'PreToolUse': [{'matcher': '^bash$', 'command': hook}]}})
        elif os.path.exists(h): os.remove(h)
        shutil.rmtree(f'{home}/.cru/contexts', ignore_errors=True)
        self._hook = hook
    def cmd(self, url): return [self.bin, '--mode', 'trust'] + (['--hooks=all'] if self._hook else []) + ['go']


class Claude(Peer):
    name = 'claude'; bin = NPM('claude', 'claude'); hooks = True; extra = []
    env = {'ANTHROPIC_API_KEY': 'sk-ant-mock', 'CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC': '1', 'DISABLE_AUTOUPDATER': '1',
           'DISABLE_TELEMETRY': '1', 'DISABLE_ERROR_REPORTING': '1', 'IS_SANDBOX': '1'}
    def environ(self, url): return {'ANTHROPIC_BASE_URL': url}
    def setup(self, home, work, url, hook):
        s = {'autoUpdates': False}
        if hook: s = {'hooks': {'PreToolUse': [{'matcher': 'Bash', 'hooks': [{'type': 'command', 'command': hook}]}]}}
        w(f'{home}/.claude/settings.json', s)
    def cmd(self, url):
        return [self.bin, '-p', 'go', '--dangerously-skip-permissions', '--model', 'claude-sonnet-4-5'] + self.extra


class ClaudeBare(Claude):
    name = 'claude-bare'; hooks = False; extra = ['--bare']


class Opencode(Peer):
    name = 'opencode'; bin = NPM('opencode', 'opencode'); hooks = True
    env = {'OPENCODE_DISABLE_AUTOUPDATE': '1', 'OPENCODE_DISABLE_MODELS_FETCH': '1', 'OPENCODE_DISABLE_LSP_DOWNLOAD': '1',
           'OPENCODE_DISABLE_DEFAULT_PLUGINS': '1'}
    def setup(self, home, work, url, hook):
        w(f'{home}/.config/opencode/opencode.json', {
            '$schema': 'https://opencode.ai/config.json', 'model': 'mock/mock', 'small_model': 'mock/mock', 'autoupdate': False,
            'share': 'disabled', 'permission': {'*': 'allow', 'bash': 'allow', 'doom_loop': 'allow'},
            'provider': {'mock': {'npm': '@ai-sdk/openai-compatible', 'name': 'mock', 'options': {'baseURL': f'{url}/v1', 'apiKey': 'x'},
                                  'models': {'mock': {'name': 'mock', 'tool_call': True, 'limit': {'context': 1000000, 'output': 8192}}}}}})
        p = f'{home}/.config/opencode/plugin/hook.js'
        if hook: w(p, '''import { spawn } from "child_process"
export const Hook = async () => ({ "tool.execute.before": async () => {
  await new Promise((r) => spawn("sh", ["-c", "%s"], { stdio: "ignore" }).on("close", r)) } })
''' % hook)
        elif os.path.exists(p): os.remove(p)
    def cmd(self, url): return [self.bin, 'run', '--auto', '-m', 'mock/mock', 'go']


class Pi(Peer):
    name = 'pi'; bin = NPM('pi', 'pi'); hooks = True
    env = {'PI_OFFLINE': '1', 'PI_SKIP_VERSION_CHECK': '1', 'PI_TELEMETRY': '0'}
    def setup(self, home, work, url, hook):
        w(f'{home}/.pi/agent/models.json', {'providers': {'mock': {'baseUrl': f'{url}/v1', 'api': 'openai-completions', 'apiKey': 'x',
            'models': [{'id': 'mock', 'name': 'mock', 'reasoning': False, 'input': ['text'], 'contextWindow': 1000000, 'maxTokens': 8192,
                        'cost': {'input': 0, 'output': 0, 'cacheRead': 0, 'cacheWrite': 0}}]}}})
        p = f'{home}/.pi/agent/extensions/hook.ts'
        if hook: w(p, '''import { spawn } from "node:child_process"
export default function (pi: any) { pi.on("tool_call", async () => {
  await new Promise((r) => spawn("sh", ["-c", "%s"], { stdio: "ignore" }).on("close", r)) }) }
''' % hook)
        elif os.path.exists(p): os.remove(p)
    def cmd(self, url): return [self.bin, '-p', '--provider', 'mock', '--model', 'mock', 'go']


class Gemini(Peer):
    name = 'gemini'; bin = NPM('gemini', 'gemini'); hooks = True
    env = {'GEMINI_API_KEY': 'x', 'GEMINI_CLI_TRUST_WORKSPACE': 'true'}
    def environ(self, url): return {'GOOGLE_GEMINI_BASE_URL': url}
    def setup(self, home, work, url, hook):
        s = {'privacy': {'usageStatisticsEnabled': False}, 'general': {'enableAutoUpdate': False, 'enableAutoUpdateNotification': False},
             'telemetry': {'enabled': False}, 'security': {'auth': {'selectedType': 'gemini-api-key'}}}
        if hook: s['hooks'] = {'BeforeTool': [{'matcher': '*', 'hooks': [{'type': 'command', 'command': hook}]}]}
        w(f'{home}/.gemini/settings.json', s)
    def cmd(self, url): return [self.bin, '-y', '--skip-trust', '-m', 'gemini-2.5-flash', '-p', 'go']


class Qwen(Peer):
    name = 'qwen'; bin = NPM('qwen', 'qwen'); hooks = True
    env = {'OPENAI_API_KEY': 'x', 'OPENAI_MODEL': 'mock'}
    def environ(self, url): return {'OPENAI_BASE_URL': f'{url}/v1'}
    def setup(self, home, work, url, hook):
        s = {'privacy': {'usageStatisticsEnabled': False}, 'general': {'disableAutoUpdate': True, 'enableAutoUpdate': False},
             'telemetry': {'enabled': False}, 'security': {'auth': {'selectedType': 'openai'}}}
        if hook: s['hooks'] = {'PreToolUse': [{'matcher': '*', 'hooks': [{'type': 'command', 'command': hook}]}]}
        w(f'{home}/.qwen/settings.json', s)
    def cmd(self, url): return [self.bin, '-y', '-p', 'go']


class KimiCode(Peer):
    name = 'kimi-code'; bin = NPM('kimicode', 'kimi'); hooks = True
    env = {'KIMI_CODE_NO_AUTO_UPDATE': '1', 'KIMI_DISABLE_TELEMETRY': '1', 'KIMI_CODE_DISABLE_TELEMETRY': '1'}
    def setup(self, home, work, url, hook):
        t = f'''default_model = "mock"
telemetry = false
[providers.mock]
type = "openai"
base_url = "{url}/v1"
api_key = "x"
[models.mock]
provider = "mock"
model = "mock"
max_context_size = 1000000
[loop_control]
max_steps_per_turn = 1000
'''
        if hook: t += f'[[hooks]]\nevent = "PreToolUse"\nmatcher = ""\ncommand = "{hook}"\n'
        w(f'{home}/.kimi-code/config.toml', t)
    def cmd(self, url): return [self.bin, '-p', 'go']


class Vibe(Peer):
    name = 'vibe'; bin = PY('vibe', 'vibe'); hooks = False
    env = {'MOCK_KEY': 'x', 'MISTRAL_API_KEY': 'x'}
    def setup(self, home, work, url, hook):
        w(f'{home}/.vibe/config.toml', f'''active_model = "mock"
enable_telemetry = false
enable_update_checks = false
enable_auto_update = false
[[providers]]
name = "mock"
api_base = "{url}/v1"
api_key_env_var = "MOCK_KEY"
api_style = "openai"
backend = "generic"
[[models]]
name = "mock"
provider = "mock"
alias = "mock"
''')
    def cmd(self, url): return [self.bin, '-p', 'go', '--auto-approve', '--trust']


class Mini(Peer):
    name = 'mini-swe-agent'; bin = PY('mini', 'mini'); ver = ['--help']
    env = {'MSWEA_CONFIGURED': 'true', 'MSWEA_COST_TRACKING': 'ignore_errors', 'MSWEA_SILENT_STARTUP': '1', 'OPENAI_API_KEY': 'x',
           'LITELLM_LOCAL_MODEL_COST_MAP': 'True'}
    def environ(self, url): return {'OPENAI_API_BASE': f'{url}/v1', 'OPENAI_BASE_URL': f'{url}/v1'}
    def cmd(self, url): return [self.bin, '-y', '--exit-immediately', '-l', '0', '-m', 'openai/mock', '-t', 'go']


class Gptme(Peer):
    name = 'gptme'; bin = PY('gptme', 'gptme')
    env = {'OPENAI_API_KEY': 'x', 'GPTME_CHECK': 'false', 'DO_NOT_TRACK': '1',
           # litellm ships cl100k_base; without it gptme tries to download it on each start
           'TIKTOKEN_CACHE_DIR': f'{B}/py/aider/lib/python3.11/site-packages/litellm/litellm_core_utils/tokenizers'}
    def environ(self, url): return {'OPENAI_BASE_URL': f'{url}/v1', 'OPENAI_API_BASE': f'{url}/v1'}
    def setup(self, home, work, url, hook):
        w(f'{home}/.config/gptme/config.toml', '[prompt]\n[env]\n')
    def cmd(self, url): return [self.bin, '-n', '--tool-format', 'tool', '-t', 'shell', '-m', 'local/mock', 'go']


class Llm(Peer):
    name = 'llm'; bin = PY('llm', 'llm')
    def setup(self, home, work, url, hook):
        w(f'{home}/.config/io.datasette.llm/extra-openai-models.yaml',
          f'- model_id: mock\n  model_name: mock\n  api_base: {url}/v1\n  supports_tools: true\n')
        w(f'{home}/fn.py', 'import subprocess\ndef bash(command: str) -> str:\n    "run a shell command"\n'
                           '    r = subprocess.run(command, shell=True, capture_output=True, text=True)\n    return r.stdout + r.stderr\n')
        self.home = home
    env = {'OPENAI_API_KEY': 'x'}
    def cmd(self, url): return [self.bin, '-m', 'mock', '--functions', f'{self.home}/fn.py', '--cl', '0', 'go']


class Aider(Peer):
    name = 'aider'; bin = PY('aider', 'aider'); multi = False
    env = {'OPENAI_API_KEY': 'x', 'LITELLM_LOCAL_MODEL_COST_MAP': 'True', 'AIDER_ANALYTICS': 'false'}
    def environ(self, url): return {'OPENAI_API_BASE': f'{url}/v1'}
    def cmd(self, url):
        return [self.bin, '--model', 'openai/mock', '--message', 'go', '--yes-always', '--no-check-update', '--no-show-model-warnings',
                '--analytics-disable', '--no-gitignore', '--no-auto-commits', '--no-show-release-notes', '--no-detect-urls']


class Openhands(Peer):
    name = 'openhands'; bin = PY('openhands', 'openhands')
    env = {'LLM_API_KEY': 'x', 'LLM_MODEL': 'openai/mock', 'LITELLM_LOCAL_MODEL_COST_MAP': 'True', 'OPENHANDS_SUPPRESS_BANNER': '1',
           'DO_NOT_TRACK': '1'}
    def environ(self, url): return {'LLM_BASE_URL': f'{url}/v1'}
    def cmd(self, url): return [self.bin, '--headless', '--override-with-envs', '--exit-without-confirmation', '-t', 'go']


class FloorRaw(Peer):
    """The floor harness (floor_harness.py) on bare asyncio streams; needs py/floors with httpx2 pyreqwest httpcore."""
    name = 'floor-raw'; mode = 'raw'; bin = PY('floors', 'python'); ver = ['-c', 'pass']
    def environ(self, url): return {'FLOOR_URL': url, 'FLOOR_MODE': self.mode}
    def cmd(self, url): return [self.bin, f'{HERE}/floor_harness.py']


class FloorPyreqwest(FloorRaw): name = 'floor-pyreqwest'; mode = 'pyreqwest'
class FloorHttpx2(FloorRaw): name = 'floor-httpx2'; mode = 'httpx2'


PEERS = {c.name: c for c in (Cru, FloorRaw, FloorPyreqwest, FloorHttpx2, Codex, CodexNative, Claude, ClaudeBare, Opencode, Pi, Gemini, Qwen, KimiCode, Vibe, Mini, Gptme, Llm, Aider, Openhands)}


# ---------------- measuring ----------------
def cpu_busy():
    f = open('/proc/stat').readline().split()[1:]
    v = list(map(int, f))
    return (v[0] + v[2] + v[5] + v[6]) / HZ, v[7] / HZ, v[1] / HZ      # busy without niced work, steal, niced


def pid_cpu(pid):
    f = open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()
    return (int(f[11]) + int(f[12])) / HZ


def quiet(limit=None, thr=0.12):
    """wait until other work on the machine is below thr cores for 0.4 s"""
    t = time.time(); limit = float(os.environ.get('BENCH_QUIET', '240'))
    while time.time() - t < limit:
        a = cpu_busy()[0]; time.sleep(0.4); b = cpu_busy()[0]
        if (b - a) / 0.4 <= thr: return True
        time.sleep(0.4)
    return False


def ctl(p):
    return json.loads(urllib.request.urlopen(f'http://127.0.0.1:{PORT}{p}', timeout=20).read())


class Mock:
    def __enter__(self):
        self.p = subprocess.Popen([f'{B}/py/floors/bin/python' if os.path.exists(f'{B}/py/floors/bin/python') else sys.executable, f'{HERE}/mockllm.py', '--port', str(PORT)] + (['--tls', TLS, '--tls-port', str(TLS_PORT)] if TLS else []), stdout=subprocess.PIPE, text=True)
        self.p.stdout.readline(); return self
    def __exit__(self, *a):
        self.p.terminate(); self.p.wait()


def tree(pid):
    out = [pid]; i = 0
    while i < len(out):
        try:
            for t in os.listdir(f'/proc/{out[i]}/task'):
                out += [int(c) for c in open(f'/proc/{out[i]}/task/{t}/children').read().split()]
        except OSError: pass
        i += 1
    return out


def pss(pid):
    s = 0
    for p in tree(pid):
        try:
            for l in open(f'/proc/{p}/smaps_rollup'):
                if l.startswith('Pss:'): s += int(l.split()[1]); break
        except OSError: pass
    return s


def one(peer, mock, n, hook=None, k=0, timeout=600, sample=False, tls=False, command=''):
    home, work = f'{B}/home/{peer.name}', f'{B}/project/{peer.name}'
    os.makedirs(home, exist_ok=True)
    if not os.path.isdir(f'{work}/.git'):
        os.makedirs(work, exist_ok=True)
        w(f'{work}/README.md', '# demo\n'); w(f'{work}/main.py', 'print("hi")\n')
        subprocess.run('git init -q . && git config user.email a@b.c && git config user.name x && git add -A && git commit -qm init', shell=True, cwd=work)
    url = (f'https://localhost:{TLS_PORT}' if tls else f'http://127.0.0.1:{PORT}') + f'/n/{n}' + (f'/k/{k}' if k else '') + (f"/c/{urllib.parse.quote(command, safe='')}" if command else '')
    peer.setup(home, work, url, hook)
    env = {'HOME': home, 'PATH': f'{B}/bin:/usr/local/bin:/usr/bin:/bin', 'TERM': 'xterm-256color', 'LANG': 'C.UTF-8', 'SHELL': '/bin/bash',
           'TMPDIR': f'{B}/tmp', 'USER': 'root', 'NO_PROXY': '127.0.0.1,localhost', **(dict.fromkeys(CA_VARIABLES, f'{TLS}/ca.pem') if tls else {}), **peer.env, **peer.environ(url)}
    os.makedirs(f'{B}/tmp', exist_ok=True)
    ctl('/_ctl/reset')
    out = open(f'{B}/out/{peer.name}.txt', 'wb')
    b0, s0, n0 = cpu_busy(); m0 = pid_cpu(mock.p.pid); me0 = sum(os.times()[:2])
    t0 = ns()
    p = subprocess.Popen(peer.cmd(url), cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
    peak = [0]; done = threading.Event()
    if sample:
        def samp():
            while not done.is_set():
                peak[0] = max(peak[0], pss(p.pid)); done.wait(0.1)
        threading.Thread(target=samp, daemon=True).start()
    kill = threading.Timer(timeout, lambda: os.killpg(p.pid, signal.SIGKILL)); kill.daemon = True; kill.start()
    _, status, ru = os.wait4(p.pid, 0)
    t1 = ns(); p.returncode = os.waitstatus_to_exitcode(status)
    done.set(); kill.cancel()
    try: os.killpg(p.pid, signal.SIGKILL)      # leftovers of this peer's own process group
    except OSError: pass
    b1, s1, n1 = cpu_busy(); m1 = pid_cpu(mock.p.pid); me1 = sum(os.times()[:2])
    own = ru.ru_utime + ru.ru_stime
    ev = ctl('/_ctl/events')
    main = [e for e in ev if e.get('main')]
    llm = [e for e in ev if e.get('kind') in ('chat', 'responses', 'anthropic', 'gemini')]
    turns = []
    for a, b in zip(main, main[1:]):
        turns.append((b['t_first'] - a['t_send']) / 1e6)
    wall = (t1 - t0) / 1e9
    r = {'peer': peer.name, 'n': n, 'k': k, 'hook': bool(hook), 'rc': p.returncode, 'wall': round(wall, 4), 'cpu': round(own, 4),
         'rss_mb': round(ru.ru_maxrss / 1024, 1), 'pss_tree_mb': round(peak[0] / 1024, 1) if sample else None,
         'mock_cpu': round(m1 - m0, 3), 'foreign': round(max(0, (b1 - b0) - own - (m1 - m0) - (me1 - me0)) / wall, 3), 'steal': round((s1 - s0) / wall, 3), 'foreign_niced': round((n1 - n0) / wall, 3),
         'llm_requests': len(llm), 'main_requests': len(main), 'other_requests': len(ev) - len(llm),
         'ttfr_ms': round((llm[0]['t_first'] - t0) / 1e6, 1) if llm else None,
         'ttfr_main_ms': round((main[0]['t_first'] - t0) / 1e6, 1) if main else None,
         'exit_ms': round((t1 - (main or llm)[-1]['t_send']) / 1e6, 1) if llm else None,
         'turn_ms': round(st.median(turns), 2) if turns else None,
         'turn_p90': round(sorted(turns)[int(len(turns) * .9)], 2) if turns else None,
         'turn_first10': round(st.median(turns[1:11]), 2) if len(turns) > 11 else None,
         'turn_last10': round(st.median(turns[-11:-1]), 2) if len(turns) > 11 else None,
         'body_first': main[0]['bytes'] if main else None, 'body_last': main[-1]['bytes'] if main else None,
         'done': (len(main) >= n + 1) if peer.multi else bool(llm), 'load': os.getloadavg()[0], 'kinds': sorted({(e.get('call') or '-') for e in main})}
    r['_turns'] = [round(x, 2) for x in turns]
    return r, ev


def version(peer, reps=5):
    home = f'{B}/home/{peer.name}'
    env = {'HOME': home, 'PATH': f'{B}/bin:/usr/local/bin:/usr/bin:/bin', 'TERM': 'xterm-256color', 'LANG': 'C.UTF-8', 'TMPDIR': f'{B}/tmp', **peer.env}
    ts = []; o = ''
    for i in range(reps + 1):
        quiet(60)
        t = ns()
        o = subprocess.run([peer.bin] + peer.ver, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        ts.append((ns() - t) / 1e6)
    return round(st.median(ts[1:]), 1), (o.strip().splitlines() or [''])[-1][:80]


def save(r):
    with open(f'{B}/results.jsonl', 'a') as f: f.write(json.dumps(r) + '\n')


def clean(peer, mock, n, reps, hook=None, tries=3, **kw):
    """reps clean runs: a run with >7% of a core of foreign CPU is repeated (up to `tries` extra)"""
    rs, bad = [], []; extra = int(os.environ.get('BENCH_TRIES', tries))
    while len(rs) < reps and len(rs) + len(bad) < reps + extra:
        q = quiet()
        r, ev = one(peer, mock, n, hook, **kw)
        r['quiet'] = q; r['pass'] = os.environ.get('BENCH_PASS', '1')
        r['dirty'] = r['foreign'] > 0.10 or r['steal'] > 0.05
        save({'what': 'run', **r})
        if not r['done']:
            print('  not done', {k: v for k, v in r.items() if k != '_turns'}); rs.append(r); break
        (bad if r['dirty'] else rs).append(r)
    return rs or bad      # dirty runs are used only where no clean one was had


def med(rs, k):
    v = [r[k] for r in rs if r.get(k) is not None]
    return round(st.median(v), 2) if v else None


def main():
    ap = argparse.ArgumentParser(); ap.add_argument('what'); ap.add_argument('peers', nargs='*')
    ap.add_argument('--n', type=int, default=3); ap.add_argument('--k', type=int, default=0); ap.add_argument('--hook', nargs='?', const='true'); ap.add_argument('--reps', type=int, default=5)
    ap.add_argument('--big', type=int, default=3, help='runs with N=200'); ap.add_argument('--huge', type=int, nargs='?', const=1, default=0, help='runs with N=1000')
    ap.add_argument('--timeout', type=int, default=600); ap.add_argument('--dump')
    a = ap.parse_args()
    if a.what == 'list': print(*PEERS); return
    if not os.environ.get('BENCH_NETNS'):
        os.execvpe('unshare', ['unshare', '-n' if os.getuid() == 0 else '-rn', sys.executable] + sys.argv, {**os.environ, 'BENCH_NETNS': '1'})
    subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
    os.makedirs(f'{B}/out', exist_ok=True)
    if a.dump: os.makedirs(a.dump, exist_ok=True); os.environ['MOCK_DUMP'] = a.dump
    if a.what == 'try': os.environ['MOCK_DEBUG'] = '1'
    with Mock() as m:
        for name in a.peers:
            p = PEERS[name]()
            if a.what == 'try':
                r, ev = one(p, m, a.n, a.hook, a.k, timeout=a.timeout)
                print(open(f'{B}/out/{name}.txt', errors='replace').read()[-2500:])
                for e in ev: print({k: v for k, v in e.items() if not k.startswith('t_')})
                print(json.dumps(r))
            elif a.what == 'bench':
                one(p, m, 2)
                v, vs = version(p)
                s = {'what': 'summary', 'pass': os.environ.get('BENCH_PASS', '1'), 'peer': name, 'version': vs, 'version_ms': v}
                r20 = clean(p, m, 20, a.reps, timeout=120)
                for k in ('ttfr_ms', 'ttfr_main_ms', 'turn_ms', 'turn_p90', 'wall', 'cpu', 'rss_mb', 'exit_ms', 'llm_requests', 'main_requests', 'body_first', 'body_last', 'foreign'):
                    s[k + '_20'] = med(r20, k)
                s['ok20'] = all(r['done'] for r in r20); s['dirty20'] = sum(r['dirty'] for r in r20)
                if p.multi and s['ok20'] and a.big:
                    r200 = clean(p, m, 200, a.big, timeout=a.timeout)
                    for k in ('turn_ms', 'turn_first10', 'turn_last10', 'wall', 'cpu', 'rss_mb', 'llm_requests', 'main_requests', 'body_last', 'foreign'):
                        s[k + '_200'] = med(r200, k)
                    s['ok200'] = all(r['done'] for r in r200); s['dirty200'] = sum(r['dirty'] for r in r200)
                    if s['cpu_200'] and s['cpu_20']: s['cpu_ms_per_turn'] = round((s['cpu_200'] - s['cpu_20']) / 180 * 1000, 2)
                if p.multi and s['ok20'] and a.huge:
                    r1000 = clean(p, m, 1000, a.huge, timeout=a.timeout)
                    for k in ('turn_ms', 'turn_first10', 'turn_last10', 'wall', 'cpu', 'rss_mb', 'main_requests', 'body_last', 'foreign'):
                        s[k + '_1000'] = med(r1000, k)
                    s['ok1000'] = all(r['done'] for r in r1000); s['dirty1000'] = sum(r['dirty'] for r in r1000)
                quiet(30)
                r, _ = one(p, m, 20 if p.multi else 0, sample=True, timeout=120); s['pss_tree_mb'] = r['pss_tree_mb']
                save(s); print(json.dumps(s), flush=True)
            elif a.what == 'hooks':
                off, on = [], []
                one(p, m, 2, a.hook or 'true')
                for i in range(a.reps):
                    off += clean(p, m, 20, 1, None, timeout=120); on += clean(p, m, 20, 1, a.hook or 'true', timeout=120)
                s = {'what': 'hooks', 'pass': os.environ.get('BENCH_PASS', '1'), 'peer': name, 'off_ms': med(off, 'turn_ms'), 'on_ms': med(on, 'turn_ms')}
                s['added_ms'] = round(s['on_ms'] - s['off_ms'], 2)
                s['off_all'] = [r['turn_ms'] for r in off]; s['on_all'] = [r['turn_ms'] for r in on]
                save(s); print(json.dumps(s), flush=True)


if __name__ == '__main__': main()
