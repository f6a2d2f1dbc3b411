"""A process that has loaded what runs of `cru` load, and forks a run for each request (tests/kit/forked.py is its client).

usage: python fork_server.py DESCRIPTOR MODULE,…     (a stream socket; the modules of a run in the order of their loading)

A request is its length (8 bytes, with four descriptors: standard input, output, error, and a pipe for news of the run) and a
marshalled dict. News are 8 bytes each: the process id, then the wait status. It has no threads, and ends with its client.
"""

from __future__ import annotations

import array
import atexit
import fcntl
import gc
import importlib
import io
import marshal
import os
import resource
import select
import signal
import socket
import sys
import termios
import threading
from importlib.machinery import SourceFileLoader
from types import ModuleType, TracebackType
from typing import Any, NoReturn

DESCRIPTORS = 4
STREAMS = ("stdin", "stdout", "stderr")
NEWS_SIZE = 8
DEFERRING = "cru.faces.cli.deferred_modules"
LARGE_PAGE = 1 << 21
MADV_HUGEPAGE, MADV_COLLAPSE = 14, 25
PROCESS_IDS = {"cru.core.plugins.python.forks": "_PROCESS"}
"""What modules take of their process when they are loaded: the id, under that name."""


class Client:
    """The other end of the socket; `receive` gives None once it has gone."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)

    def fileno(self) -> int:
        return self._socket.fileno()

    def receive(self) -> tuple[dict[str, Any], list[int]] | None:
        head, ancillary, _, _ = self._socket.recvmsg(8, socket.CMSG_SPACE(DESCRIPTORS * 4))
        if not head:
            return None
        descriptors = array.array("i")
        for _level, _type, data in ancillary:
            descriptors.frombytes(data)
        return marshal.loads(self._exactly(int.from_bytes(head, "little"))), list(descriptors)

    def _exactly(self, size: int) -> bytes:
        pieces = bytearray()
        while len(pieces) < size:
            piece = self._socket.recv(size - len(pieces))
            if not piece:
                raise EOFError("the client went away in the middle of a request")
            pieces += piece
        return bytes(pieces)


class Runs:
    """The runs that have not ended."""

    def __init__(self) -> None:
        self._by_pidfd: dict[int, tuple[int, int]] = {}

    def watch(self, pid: int, news: int, poll: select.poll) -> None:
        pidfd = os.pidfd_open(pid)
        self._by_pidfd[pidfd] = pid, news
        poll.register(pidfd, select.POLLIN)
        _tell(news, pid)

    def ended(self, pidfd: int, poll: select.poll) -> None:
        pid, news = self._by_pidfd.pop(pidfd)
        poll.unregister(pidfd)
        os.close(pidfd)
        _tell(news, os.waitpid(pid, 0)[1])
        os.close(news)

    def kill(self) -> None:
        for pid, _news in self._by_pidfd.values():
            try:
                os.killpg(pid, signal.SIGKILL)
            except ProcessLookupError:
                os.kill(pid, signal.SIGKILL)  # it has just begun and has no group yet


def _tell(news: int, number: int) -> None:
    try:
        os.write(news, number.to_bytes(NEWS_SIZE, "little"))
    except BrokenPipeError:
        pass  # nobody waits for this run any more


def serve(client: Client) -> tuple[dict[str, Any], list[int]]:
    """Fork for each request; returns only in the child, with what it has to run."""
    runs, poll = Runs(), select.poll()
    poll.register(client, select.POLLIN)
    while True:
        for ready, _ in poll.poll():
            if ready != client.fileno():
                runs.ended(ready, poll)
                continue
            request = client.receive()
            if request is None:
                runs.kill()
                os._exit(0)
            pid = os.fork()
            if pid == 0:
                return request
            *streams, news = request[1]
            for descriptor in streams:
                os.close(descriptor)
            runs.watch(pid, news, poll)


def become(run: dict[str, Any], descriptors: list[int]) -> None:
    """Make this process what a fresh interpreter with that command line, environment and those streams is."""
    os.setsid()
    for number in range(len(STREAMS)):
        os.dup2(descriptors[number], number)
    if run["terminal"]:
        take_terminal()
    os.closerange(len(STREAMS), os.sysconf("SC_OPEN_MAX"))
    os.umask(run["umask"])
    for kind, limits in run["limits"].items():
        if resource.getrlimit(kind) != limits:
            resource.setrlimit(kind, limits)
    os.chdir(run["cwd"])
    os.environ.clear()
    os.environ.update(run["env"])
    sys.argv = run["argv"]
    sys.orig_argv = [sys.executable, *sys.argv]
    sys.path.insert(0, os.path.dirname(os.path.realpath(sys.argv[0])))
    for name, variable in PROCESS_IDS.items():
        setattr(sys.modules[name], variable, os.getpid())
    open_streams()


def take_terminal() -> None:
    """Standard input becomes the controlling terminal of this session."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def open_streams() -> None:
    """As the interpreter does at its start (create_stdio in pylifecycle.c)."""
    for number, name in enumerate(STREAMS):
        previous = getattr(sys, name)
        buffer: Any = open(number, "wb" if number else "rb", closefd=False)  # noqa: SIM115
        buffer.raw.name = f"<{name}>"
        stream = io.TextIOWrapper(
            buffer, previous.encoding, previous.errors, "\n", line_buffering=number == 2 or buffer.raw.isatty()
        )
        stream.mode = "w" if number else "r"  # type: ignore[misc]
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def main_module(path: str) -> ModuleType:
    module = ModuleType("__main__")
    module.__file__, module.__loader__ = path, SourceFileLoader("__main__", path)
    module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = module
    return module


def _report_as_top_level(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """A traceback begins in the script, not here."""
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    sys.__excepthook__(kind, error.with_traceback(trace), trace)


def run_script(path: str) -> None:
    with open(path, "rb") as file:
        source = file.read()
    try:
        exec(compile(source, path, "exec"), main_module(path).__dict__)
    except BaseException:
        sys.excepthook = _report_as_top_level
        raise


def run_to_end(path: str) -> NoReturn:
    """Run the script and end the process as the interpreter does, but do not take apart one by one all that was loaded: that takes longer
    than the run. With a traceback, a text as the status, or a stream that has failed it is the interpreter that ends it."""
    status = 0
    try:
        run_script(path)
    except SystemExit as end:
        if not isinstance(end.code or 0, int):
            raise
        status = int(end.code or 0)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        sys.exit(status)  # it tries again, and says so
    os._exit(status & 0xFF)


def describe_structs() -> None:
    """What msgspec learns of a record when it first reads one, and keeps with its class."""
    import msgspec

    kinds = [msgspec.Struct]
    for kind in kinds:
        kinds += kind.__subclasses__()
    for kind in kinds[1:]:
        try:
            msgspec.json.Decoder(kind)
        except (TypeError, NameError):
            pass  # none that is read: a field's type is no data, or only known to a type checker


def use_large_pages() -> None:
    """Memory that is written to no more lies in pages of 2 MB, where Linux can collapse small ones: a fork copies the table of pages, and
    its end takes it apart, which is a fifth of what a run costs the kernel."""
    import ctypes

    madvise = getattr(ctypes.CDLL(None), "madvise", None)
    if madvise is None or not os.path.exists("/proc/self/maps"):
        return
    with open("/proc/self/maps") as file:
        areas = [line.split() for line in file]
    for addresses, access, _, _, inode, *_ in areas:
        first, last = (int(address, 16) for address in addresses.split("-"))
        first, last = -(-first // LARGE_PAGE) * LARGE_PAGE, last // LARGE_PAGE * LARGE_PAGE
        if access == "rw-p" and inode == "0" and first < last:
            for advice in (MADV_HUGEPAGE, MADV_COLLAPSE):  # what the kernel does not know is left as it is
                madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), advice)


def main() -> None:
    descriptor, modules = int(sys.argv[1]), sys.argv[2].split(",")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the client did with them
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    del sys.path[0]  # the folder of this file; a run has that of its script
    own = sys.modules.keys() - set(modules)
    for name in modules:
        module = importlib.import_module(name)
        if name == DEFERRING:
            module.defer_modules()
    describe_structs()
    gc.freeze()
    loaded = set(sys.modules)
    use_large_pages()
    own |= sys.modules.keys() - loaded
    run, descriptors = serve(Client(descriptor))
    become(run, descriptors)
    for name in own:
        del sys.modules[name]
    gc.unfreeze()
    run_to_end(sys.argv[0])


if __name__ == "__main__":
    main()
