"""What measures the rows of docs/performance.md. Each runner does one pass and returns a sample for each of its rows that could be measured."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import pty
import re
import select
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench import run_peer
from bench.run_peer import B as HOME, PY, CodexNative, Cru, FloorRaw, Peer, Pi, one

CRU = PY("cru", "cru")
PYTHON = PY("cru", "python")
TLS = f"{HOME}/tls"
ROOT = Path(__file__).parent.parent
_mock: run_peer.Mock


class Sample(NamedTuple):
    """One pass.

    figure: in the unit of the row
    made_of: what it was made of, for the page
    """

    figure: float
    made_of: str


class CruOverTls(Cru):
    """The same server over TLS, with a certificate of a made authority that is verified as any other."""

    name = "cru-tls"

    def setup(self, home: str, work: str, url: str, hook: str | None) -> None:
        super().setup(home, work, url.replace(f"http://127.0.0.1:{run_peer.PORT}", f"https://localhost:{run_peer.TLS_PORT}"), hook)

    def environ(self, url: str) -> dict[str, str]:
        return {"SSL_CERT_FILE": f"{TLS}/ca.pem"}


class CruWithPlugins(Cru):
    """With 300 plugins in Lua."""

    name = "cru-plugins"

    def setup(self, home: str, work: str, url: str, hook: str | None) -> None:
        super().setup(home, work, url, hook)
        folder = Path(home, ".cru", "plugins")
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(300):
            source = f'local seen = {number}\ncru.on("tool:before_call", function(ctx, event) seen = seen + 1 end)\n'
            (folder / f"plugin_{number:03}.lua").write_text(source)


class CruConfined(Cru):
    """With its commands in the sandbox, as they are by default."""

    name = "cru-confined"
    env: dict[str, str] = {}


class CruInLargeProject(Cru):
    """In a git project of 5,000 files."""

    name = "cru-large"

    def setup(self, home: str, work: str, url: str, hook: str | None) -> None:
        super().setup(home, work, url, hook)
        if Path(work, "many").exists():
            return
        for number in range(5000):
            file = Path(work, "many", str(number // 50), f"{number}.txt")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{number}\n")
        subprocess.run("git add -A && git commit -qm many", shell=True, cwd=work, check=True)


def isolate(words: list[str]) -> None:
    """Go on in a network that is only this machine's loopback."""
    if not os.environ.get("BENCH_NETNS"):
        unshare = ["unshare", "-n" if os.getuid() == 0 else "-rn", sys.executable, "-m", "bench.performance", *words]
        os.execvpe("unshare", unshare, {**os.environ, "BENCH_NETNS": "1"})
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


@contextlib.contextmanager
def prepared() -> Iterator[None]:
    """With a server, over HTTP and over TLS, and a warm cru."""
    global _mock
    os.makedirs(f"{HOME}/out", exist_ok=True)
    make_certificates()
    run_peer.TLS = TLS
    with run_peer.Mock() as _mock:
        for peer in (Cru(), CruOverTls()):
            run, _ = one(peer, _mock, 2)
            if not run["done"]:
                raise SystemExit(f"{peer.name} does not work: see {HOME}/out/{peer.name}.txt")
        yield


def mock() -> run_peer.Mock:
    """The server of `prepared`."""
    return _mock


def make_certificates() -> None:
    """An authority and a certificate for localhost, once."""
    if os.path.exists(f"{TLS}/server.pem"):
        return
    os.makedirs(TLS, exist_ok=True)
    Path(TLS, "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    for words in (
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 3650 -subj /CN=cru-bench",
        "req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost",
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 3650 -extfile names -out server.pem",
    ):
        subprocess.run(["openssl", *words.split()], cwd=TLS, check=True, capture_output=True)


def machine() -> dict[str, object]:
    """What was measured on."""
    described = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return {
        "cores": os.cpu_count(), "processor": model[1] if model else platform.machine(), "system": f"{platform.system()} {platform.release()}",
        "python": subprocess.run([PYTHON, "-VV"], capture_output=True, text=True).stdout.strip(), "commit": described,
    }  # fmt: skip


def is_there(peer: Peer) -> bool:
    return bool(peer.bin) and os.path.exists(peer.bin)


def interleaved(peers: dict[str, Peer], n: int, reps: int, figure: str) -> dict[str, float]:
    """The median of a figure of each peer's runs; they take turns."""
    runs: dict[str, list[float]] = {name: [] for name, peer in peers.items() if is_there(peer)}
    for _ in range(reps):
        for name, taken in runs.items():
            run, _ = one(peers[name], _mock, n, timeout=900)
            if not run["done"]:
                raise SystemExit(f"{peers[name].name} did not finish: see {HOME}/out/{peers[name].name}.txt")
            taken.append(run[figure])
    return {name: statistics.median(taken) for name, taken in runs.items()}


def seconds_of(*words: str) -> float:
    began = time.perf_counter()
    subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env={"PATH": "/usr/bin:/bin", "HOME": f"{HOME}/home/cru"}, check=True)
    return time.perf_counter() - began


def starts(reps: int) -> dict[str, Sample]:
    """Start → first request, beside codex and the bare harness; what needs no request, beside the interpreter."""
    plain: dict[str, tuple[str, ...]] = {"bare": (PYTHON, "-c", "pass"), "version": (CRU, "--version"), "help": (CRU, "--help")}
    taken: dict[str, list[float]] = {name: [] for name in plain}
    for _ in range(reps):
        for name, words in plain.items():
            taken[name].append(seconds_of(*words) * 1000)
    bare = statistics.median(taken["bare"])
    samples = {
        name: Sample(statistics.median(taken[name]) - bare, f"{statistics.median(taken[name]):.0f} ms; interpreter {bare:.0f} ms")
        for name in ("version", "help")
    }
    peers = {"cru": Cru(), "tls": CruOverTls(), "codex": CodexNative(), "floor": FloorRaw()}
    times = interleaved(peers, 1, reps, "ttfr_ms")
    samples["start-https"] = Sample(times["tls"] - times["cru"], f"{times['tls']:.0f} ms; http {times['cru']:.0f} ms")
    for name, other in (("start-http", "codex"), ("start-bare", "floor")):
        if other in times:
            samples[name] = Sample(times["cru"] / times[other], f"{times['cru']:.0f} ms; {peers[other].name} {times[other]:.0f} ms")
    return samples


def rounds_20(reps: int) -> dict[str, Sample]:
    times = interleaved({"cru": Cru(), "floor": FloorRaw(), "pi": Pi()}, 20, max(reps // 2, 1), "turn_ms")
    return _ratios(times, {"round-20": "floor", "round-pi": "pi"})


def rounds_200(reps: int) -> dict[str, Sample]:
    memory = one(Cru(), _mock, 200)[0]["rss_mb"]
    times = interleaved({"cru": Cru(), "floor": FloorRaw()}, 200, 1, "turn_ms")
    return _ratios(times, {"round-200": "floor"}) | {"memory": Sample(memory, "the largest process of the run")}


def rounds_1000(reps: int) -> dict[str, Sample]:
    return _ratios(interleaved({"cru": Cru(), "floor": FloorRaw()}, 1000, 1, "turn_ms"), {"round-1000": "floor"})


def writes(reps: int) -> dict[str, Sample]:
    """CPU of all processes per round: a command that may write beside one that only reads."""
    samples = {}
    for row, peer in (("write", Cru()), ("write-large", CruInLargeProject())):
        taken: dict[str, list[float]] = {"true {i}": [], "echo {i} >> notes.txt": []}
        for _ in range(max(reps // 2, 1)):
            for command, rounds in taken.items():
                few, many = (one(peer, _mock, n, command=command)[0]["cpu"] for n in (5, 205))
                rounds.append((many - few) / 200 * 1000)
        reading, writing = map(statistics.median, taken.values())
        samples[row] = Sample(writing / reading, f"{writing:.1f} ms; a reading one {reading:.1f} ms")
    return samples


def sandbox(reps: int) -> dict[str, Sample]:
    """A round whose command is confined, beside one whose command is not."""
    times = interleaved({"cru": Cru(), "confined": CruConfined()}, 20, max(reps // 2, 1), "turn_ms")
    made_of = f"{times['confined']:.1f} ms; without {times['cru']:.1f} ms"
    return {"sandbox": Sample(times["confined"] - times["cru"], made_of)}


def counts(reps: int) -> dict[str, Sample]:
    """What does not depend on the machine's load; {} without valgrind and strace."""
    if not (shutil.which("valgrind") and shutil.which("strace")):
        return {}
    only = ("--git", "--only", "instructions,calls,system")
    own = json.loads(output_of("instructions.py", *only, "--python", PYTHON))
    floor = json.loads(output_of("instructions.py", *only, "--floor"))
    samples = {
        f"{name}-instructions": Sample(own[key], f"the bare harness {floor[key]:.2f}")
        for name, key in (("start", "start"), ("round", "round"), ("first", "first call"))
    }
    samples["round-calls"] = Sample(own["Python calls"], "functions of the main thread")
    samples["round-system-calls"] = Sample(own["system calls"], f"of the main thread; the bare harness {floor['system calls']:.0f}")
    return samples


def _ratios(times: dict[str, float], rows: dict[str, str]) -> dict[str, Sample]:
    return {
        row: Sample(times["cru"] / times[other], f"{times['cru']:.2f} ms; {other} {times[other]:.2f} ms")
        for row, other in rows.items()
        if other in times
    }


def chat(reps: int) -> dict[str, Sample]:
    """A chat on a pseudo-terminal: from its start to its `>`."""
    drawn, bare = [], []
    for _ in range(reps):
        drawn.append(prompt_ms())
        bare.append(seconds_of(PYTHON, "-c", "pass") * 1000)
    prompt, interpreter = statistics.median(drawn), statistics.median(bare)
    return {"chat": Sample(prompt - interpreter, f"{prompt:.0f} ms; interpreter {interpreter:.0f} ms")}


def prompt_ms() -> float:
    home = f"{HOME}/home/cru"
    began = time.perf_counter()
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(home)
        os.execve(CRU, [CRU], {"PATH": "/usr/bin:/bin", "HOME": home, "TERM": "xterm-256color", "LANG": "C.UTF-8"})
    try:
        shown = b""
        while not re.search(rb"(?:^|[\r\n])>", re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", shown)):
            if not select.select([terminal], [], [], 30)[0]:
                raise SystemExit(f"no prompt of the chat within 30 s: {shown!r}")
            data = os.read(terminal, 65536)
            if b"\x1b[6n" in data:  # the line editor asks where the cursor is
                os.write(terminal, b"\x1b[1;1R")
            shown += data
        taken = (time.perf_counter() - began) * 1000
        os.write(terminal, b"\x04")
        with contextlib.suppress(OSError):
            while os.read(terminal, 65536):
                pass
    finally:
        os.waitpid(process, 0)
        os.close(terminal)
    return taken


def plugins(reps: int) -> dict[str, Sample]:
    """300 plugins against none: when the first request goes out, and the memory of the run."""
    times = interleaved({"cru": Cru(), "with": CruWithPlugins()}, 1, max(reps // 2, 1), "ttfr_ms")
    memory = interleaved({"cru": Cru(), "with": CruWithPlugins()}, 1, 1, "rss_mb")
    return {
        "plugins": Sample(times["with"] - times["cru"], f"{times['with']:.0f} ms; without {times['cru']:.0f} ms"),
        "plugins-memory": Sample(memory["with"] - memory["cru"], f"{memory['with']:.0f} MB; without {memory['cru']:.0f} MB"),
    }


def agents(reps: int) -> dict[str, Sample]:
    """agents.py: a hundred agents in the background of one process, and the way of a sub-agent to its first request."""
    return _figures("bench.agents", "100")


def fleet(reps: int) -> dict[str, Sample]:
    """fleet.py: the time of two workers in that of one, on two processors."""
    return _figures("bench.fleet", "300")


def vault(reps: int) -> dict[str, Sample]:
    """vault.py: 10 MB of notes, and 100,000 notes."""
    return {name: Sample(*sample) for name, sample in json.loads(output_of("vault.py", "--json") or "{}").items()}


def _figures(module: str, *words: str) -> dict[str, Sample]:
    """What a bench that needs the kit of the tests says of the cru that is installed here; {} without a development environment."""
    python = ROOT / ".venv" / "bin" / "python"
    if not python.exists():
        return {}
    done = subprocess.run([python, "-m", module, *words, "--program", CRU, "--json"], capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        return {}
    return {name: Sample(*sample) for name, sample in json.loads(done.stdout).items()}


def output_of(script: str, *words: str) -> str:
    """What a script of bench/ prints, run where cru is installed. One that fails is shown."""
    done = subprocess.run([PYTHON, str(ROOT / "bench" / script), *words], capture_output=True, text=True, cwd=HOME)
    if not done.stdout:
        print(done.stderr, file=sys.stderr)
    return done.stdout


HANDLER_CASES = {
    "nobody": "tool: no handler", "lua-reads": "tool: lua reads", "lua-changes": "tool: lua changes",
    "python-reads": "tool: callable reads", "python-changes": "tool: callable changes",
    "plugin-reads": "tool: python reads", "plugin-changes": "tool: python changes",
}  # fmt: skip


def handlers(reps: int) -> dict[str, Sample]:
    """handlers.py: the least CPU time of a dispatch, and its ratio to the bare machine of Lua."""
    cases = {match[1]: (float(match[2]), float(match[3])) for match in re.finditer(r"^(\S.*?) {2,}([\d.]+) +([\d.]+)", output_of("handlers.py"), re.M)}
    return {
        row: Sample(cases[case][0], f"{cases[case][1]:.2f} × the bare bridge to Lua")
        for row, case in HANDLER_CASES.items()
        if case in cases
    }


def hooks(reps: int) -> dict[str, Sample]:
    """hooks.py: a dispatch to one command hook beside a bare spawn of the same command."""
    match = re.search(r"one hook / bare spawn: best ([\d.]+), median ([\d.]+)", output_of("hooks.py", "--leaks", "0"))
    return {} if match is None else {"hook": Sample(float(match[2]), f"of the best times {match[1]}")}

