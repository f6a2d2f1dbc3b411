"""What a start, a first tool call and a round may cost, in figures that do not depend on how busy the machine is. A figure may fall, and
its limit with it; a test that fails prints what was added."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

import msgspec
import pytest
from msgspec import Struct
from tests.kit import Call, HomeDir, Reply, server

pytestmark = [
    pytest.mark.real_start,
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the limits are those of Python 3.11"),
]

PROBE = """
import builtins, json, os, sys
build, real, compiles, classes, calls, compiled = builtins.__build_class__, os._exit, builtins.compile, [], 0, []

def build_class(function, name, *bases, **options):
    module = function.__globals__.get("__name__", "")
    if module.partition(".")[0] == "cru":
        classes.append(f"{module}.{name}")
    return build(function, name, *bases, **options)

def compile_text(source, *rest, **options):
    compiled.append(str(source))
    return compiles(source, *rest, **options)

def count(frame, event, argument):
    # starts of functions outside of the event loop: how often that wakes a coroutine depends on how answers arrive
    global calls
    if event == "call":
        file, is_resumed = frame.f_code.co_filename, frame.f_code.co_code[frame.f_lasti + 1]  # the operand of RESUME
        calls += not is_resumed and "/asyncio/" not in file and not file.endswith("selectors.py")

def size(code):
    return len(code.co_code) + sum(size(const) for const in code.co_consts if hasattr(const, "co_code"))

def leave(status):
    sys.setprofile(None)
    # Debian's interpreter brings a module of its own
    ran = [name for name, module in sys.modules.items() if type(module).__name__ != "DeferredModule" and name != "sitecustomize"]
    own = [name for name in ran if name.partition(".")[0] == "cru"]
    code = {name: size(sys.modules[name].__spec__.loader.get_code(name)) for name in own}
    probe = {"modules": ran, "classes": classes, "code": code, "calls": calls, "compiled": compiled}
    os.write(2, ("PROBE " + json.dumps(probe) + "\\n").encode())
    real(status)

builtins.__build_class__, os._exit, builtins.compile = build_class, leave, compile_text
sys.argv = ["cru", "go"]
from cru.faces.cli.main import main
if COUNTS:
    sys.setprofile(count)
main()
"""


class Limits(Struct, frozen=True):
    """first: modules of the first tool call. calls, system_calls: per round, on the main thread, without those that depend on how answers
    arrive. Measured alone and beside busy loops: 584 to 585 calls, 46 to 53 system calls."""

    own: int
    modules: int
    classes: int
    code: int
    first: int
    calls: int
    system_calls: int


LIMITS = {
    "folder": Limits(102, 241, 417, 471_900, 19, 600, 60),
    "repository": Limits(103, 242, 418, 475_200, 23, 600, 57),
}
"""The repository needs `revisions`, whose store is there for its work tree."""
PROCESSES = 1
"""Of each command: its shell."""


class Cost(Struct, frozen=True):
    """What a run reports. modules: whose code ran; classes: of cru; code: bytes of the bytecode of each module of cru; calls: of Python
    functions on the main thread; compiled: source text, such as an annotation of a struct that is text."""

    modules: set[str]
    classes: list[str]
    code: dict[str, int]
    calls: int
    compiled: list[str]


@pytest.fixture(params=sorted(LIMITS))
def kind(request: pytest.FixtureRequest, home: HomeDir) -> str:
    """Where it runs: the project is a plain folder, or a git repository."""
    kind: str = request.param
    if kind == "repository":
        subprocess.run(["git", "init", "-q"], cwd=home.project, check=True)
    return kind


def run(home: HomeDir, rounds: int, before: Sequence[str] = (), counts: bool = False) -> str:
    """Standard error of a run with so many calls of the shell tool."""
    # runs share a conversation, in which servers repeat no id
    calls = [Reply(calls=[Call("bash", {"command": f"true {n}"}, id=f"call_{rounds}_{n}")]) for n in range(rounds)]
    with server([*calls, Reply("done")]) as model:
        home.configure('mode = "trust"\n', url=model.url)
        done = subprocess.run(
            [*before, sys.executable, "-c", PROBE.replace("COUNTS", str(counts))],
            env={**home.env, "TMPDIR": str(home.path)},  # no earlier run has left anything there that a start would look at
            cwd=home.project, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )  # fmt: skip
    assert done.returncode == 0 and "done" in done.stdout, done.stderr
    return done.stderr


def cost(home: HomeDir, rounds: int, counts: bool = False) -> Cost:
    """What such a run costs once the bytecode and cru's own caches are there."""
    return msgspec.json.decode(run(home, rounds, counts=counts).rpartition("PROBE ")[2], type=Cost)


def own(modules: set[str]) -> list[str]:
    return sorted(name for name in modules if name.partition(".")[0] == "cru")


@pytest.mark.sample(1)
@pytest.mark.parametrize("sandbox", ["", "off"])
def test_a_start_loads_no_more_modules_classes_and_code_than_now(home: HomeDir, kind: str, sandbox: str) -> None:
    limits, home.sandbox = LIMITS[kind], sandbox
    cost(home, 0)
    start = cost(home, 0)
    assert len(own(start.modules)) <= limits.own, own(start.modules)
    assert len(start.modules) <= limits.modules, sorted(start.modules)
    assert len(start.classes) <= limits.classes, start.classes
    assert sum(start.code.values()) <= limits.code, start.code
    assert start.compiled == [], "a module with structs that are decoded at the start has annotations that are objects"


@pytest.mark.sample(1)
def test_the_first_tool_call_loads_no_more_modules_than_now(home: HomeDir, kind: str) -> None:
    cost(home, 0)
    new = cost(home, 1).modules - cost(home, 0).modules
    assert len(new) <= LIMITS[kind].first, sorted(new)


@pytest.mark.sample(1)
def test_a_round_makes_no_more_calls_of_functions_than_now(home: HomeDir, kind: str) -> None:
    cost(home, 1)
    few, many = (cost(home, rounds, counts=True).calls for rounds in (5, 25))
    assert few < many <= few + 20 * LIMITS[kind].calls


@pytest.mark.sample(1)
@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_a_round_makes_no_more_system_calls_and_processes_than_now(home: HomeDir, kind: str) -> None:
    cost(home, 1)
    counts = []
    for rounds in (5, 25):
        traces = home.path / f"traces{rounds}"
        traces.mkdir()
        run(home, rounds, ["strace", "-ff", "-qq", "-o", str(traces / "of")])
        texts = [file.read_text() for file in traces.iterdir()]
        program = "".join(chr(b) if b < 128 else f"\\{b:o}" for b in os.fsencode(sys.executable))  # as strace writes it
        (main,) = (text for text in texts if text.startswith(f'execve("{program}"'))
        # how often threads wait for one another, or the loop for what comes in pieces, depends on how busy the machine is
        done = [
            line
            for line in main.splitlines()
            if not line.startswith(("futex(", "epoll_wait(", "recvfrom(", "---", "+++"))
        ]
        counts.append((len(done), len(texts)))
    (few, few_processes), (many, many_processes) = counts
    assert few < many <= few + 20 * LIMITS[kind].system_calls
    assert many_processes - few_processes == 20 * PROCESSES
