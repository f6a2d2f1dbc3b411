"""The event loop of a session and its signals: what runs on it, what ends it, and what ends the process if it does not come back.

A thread hears signals as well, so that what blocks the loop does not make the process immortal: Lua lets other threads run, and so
does Python; only a long call of C that does not (none that plugins reach through `cru`) is out of reach.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from selectors import DefaultSelector
from typing import TYPE_CHECKING, ClassVar, NoReturn, TypeVar, TypeVarTuple, Unpack

from cru.core.base.values.errors import CruError
from cru.core.events import NotYours

if TYPE_CHECKING:
    from cru.core.base.process.guardian import Guardian, Listener
    from cru.core.turn.session import Session

T = TypeVar("T")
Args = TypeVarTuple("Args")

ALWAYS_HEARD = (signal.SIGINT, signal.SIGTERM)
"""Signals that end what runs, also if whoever started this process had it ignore them."""
ENDING = (
    *ALWAYS_HEARD, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGXCPU,
)  # fmt: skip
"""Signals that end what runs, unless they are ignored (nohup) or a plugin has a use for them."""
DEAF_SECONDS = 2.0
"""For so long the loop may be deaf to a signal that ends the run (SIGINT: to the second one)."""
LAST_SECONDS = 3.0
"""After a signal that ends the run; whatever is not over then ends with the process."""
ENOUGH_SIGNALS = 3
"""This many of them leave at once."""
LEFTOVER_SECONDS = 0.3
"""For tasks that still run when the work is done."""

LAST_ACTS: list[Callable[[], object]] = []
"""What is done even if the process leaves at once; they raise nothing and import nothing."""


class SignalInterrupt(CruError):
    """A signal ended what ran outside of a turn; `code` is the exit status that it asks for."""

    def __init__(self, code: int) -> None:
        super().__init__("interrupted")
        self.code = code


def run_async(work: Coroutine[object, object, T]) -> T:
    """Run it to its end. What it left running gets a moment; threads get none, for the process ends without them."""
    loop, process = WatchedEventLoop(), os.getpid()
    asyncio.set_event_loop(loop)
    try:
        return _run_to_end(loop, work)
    finally:
        if os.getpid() != process:  # a plugin forked it off, and it went on to here
            os._exit(1)
        leftover = asyncio.all_tasks(loop)
        for task in leftover:
            task.cancel()
        if leftover:
            _run_to_end(loop, asyncio.wait(leftover, timeout=LEFTOVER_SECONDS))
        asyncio.set_event_loop(None)
        loop.close()


def run_interruptible(work: Coroutine[object, object, T]) -> T:
    """`run_async` for work without signal handlers of its own: the first signal cancels it. Raises SignalInterrupt."""

    async def watched() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        received: list[int] = []

        def cancel(number: int) -> None:
            received.append(number)
            task.cancel()

        if isinstance(loop, WatchedEventLoop):
            loop.add_ending_handlers(cancel)
        try:
            return await work
        except asyncio.CancelledError:
            if not received:
                raise
            raise SignalInterrupt(128 + received[0]) from None

    return run_async(watched())


def _run_to_end(loop: asyncio.AbstractEventLoop, work: Coroutine[object, object, T]) -> T:
    """The loop lets SystemExit and KeyboardInterrupt out of any task at once. A plugin's own is reported, and the loop goes on."""
    task = loop.create_task(work)
    while True:
        try:
            return loop.run_until_complete(task)
        except (SystemExit, KeyboardInterrupt) as raised:
            from cru.core.base.values.cancellation import from_outside

            if from_outside(raised) or (task.done() and not task.cancelled() and task.exception() is raised):
                raise
            loop.call_exception_handler({"message": "a task ends the program", "exception": raised})


class SignalHandlers:
    """Handlers on the running loop: Ctrl-C and SIGTERM end the turn with its log complete; Ctrl-Z announces itself first.

    `code` is the exit status that a signal asks for, 0 if none came. What ends has LAST_SECONDS for it; the third signal leaves at once,
    with the log complete up to there.
    """

    def __init__(self, session: Session) -> None:
        self.code = 0
        self._count = 0
        self._session = session
        self._end_work: Callable[[], object] = session.end
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        if isinstance(self._loop, WatchedEventLoop):
            self._loop.add_ending_handlers(self._end)
        self._loop.add_signal_handler(signal.SIGTSTP, self._suspend)

    def remove(self) -> None:
        for number in (*ENDING, signal.SIGTSTP):
            self._loop.remove_signal_handler(number)

    def on_interrupt(self, call: Callable[[], object]) -> None:
        """Let Ctrl-C do something else than end the session."""
        self._loop.add_signal_handler(signal.SIGINT, call)

    def on_end(self, call: Callable[[], object]) -> None:
        """Let signals that end the run end something else than the session."""
        self._end_work = call

    async def suspend(self, how: str = "SIGTSTP") -> None:
        """Hand control over to whoever started this process, until it continues it."""
        from cru.core.events.payloads import SessionPaused, SessionResumed
        from cru.faces.cli.terminal.keyboard import hide_prompt

        bus = self._session.parts.bus
        await bus.dispatch(SessionPaused(how))
        async with hide_prompt():
            os.kill(os.getpid(), signal.SIGSTOP)
        await bus.dispatch(SessionResumed("SIGCONT"))

    def _end(self, number: int) -> None:
        self.code = 128 + number
        self._count += 1
        if self._count >= ENOUGH_SIGNALS:
            exit_now(self.code, self._loop)
        self._end_work()

    def _suspend(self) -> None:
        task = self._loop.create_task(self.suspend())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class WatchedEventLoop(asyncio.SelectorEventLoop):
    """As its base; but a thread ends the process, with 128 + number, once the loop does not answer to a signal for DEAF_SECONDS, or
    LAST_SECONDS after one that ends the run. Nobody stops it."""

    _running: ClassVar[WatchedEventLoop | None] = None

    def __init__(self) -> None:
        self._poll = DefaultSelector()
        super().__init__(self._poll)
        WatchedEventLoop._running = self
        self.children: dict[int, Callable[[], None]] = {}
        """What ends each running child, by process id (cru.core.base.process.child.Children)."""
        self.guardian: Guardian | None = None
        """What ends running commands if this process is killed; the first of them makes it (cru.core.base.process.child)."""
        self.guardian_listeners: list[Listener] = []
        self._computations: dict[int, bool] = {}
        """Process ids, and whether they were killed."""
        self._handlers: dict[int, Callable[[], object]] = {}
        self._ending: set[int] = set()
        self._undelivered: list[tuple[int, float]] = []
        self._deadline: tuple[int, float] | None = None
        self._pipe = -1
        self._interrupt_before = signal.getsignal(signal.SIGINT)
        self.restore_terminal: Callable[[], None] = _nothing
        """Sets the terminal as it was when signals were first listened to; of use to who leaves at once."""
        self._watcher: threading.Thread | None = None

    def stop(self) -> None:
        """For asyncio, when the work is done. Raises NotYours."""
        if sys._getframe(1).f_globals.get("__name__") != "asyncio.base_events":
            raise NotYours("the event loop is cru's, and nobody else stops it", "return from the handler instead")
        super().stop()

    def close(self) -> None:
        """Let go of everything: another run may follow in this process. What nobody waited for ends with the programs that it runs."""
        if self.is_closed():
            return
        for kill in tuple(self.children.values()):
            kill()
        if self.guardian is not None:
            self.guardian.close()
        for number in tuple(self._handlers):
            self.remove_signal_handler(number)
        if self._watcher is not None:
            signal.set_wakeup_fd(-1)
            if self._deadline is None:  # else the process has to end in time, whatever is left to do
                os.write(self._pipe, b"\0")
                self._watcher.join()
                os.close(self._pipe)
                self._pipe = -1
        self.set_exception_handler(_ignore)
        WatchedEventLoop._running = None
        super().close()

    @classmethod
    def leave_to_parent(cls) -> None:
        """For a process that a plugin forks off: signals are its own, and it runs nothing that waits in the loop."""
        loop = cls._running
        if loop is None:
            return
        signal.set_wakeup_fd(-1)
        for number in loop._handlers:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        if loop.guardian is not None:
            loop.guardian.disown()
        loop._poll.close()

    def add_ending_handlers(self, callback: Callable[[int], object]) -> None:
        """Call it with the number of a signal that ends the run: from then on the process has LAST_SECONDS, whatever the loop does."""
        for number in ENDING:
            if number in ALWAYS_HEARD or signal.getsignal(number) is not signal.SIG_IGN:
                self.add_signal_handler(number, callback, number)
                self._ending.add(number)

    def add_signal_handler(self, sig: int, callback: Callable[[Unpack[Args]], object], *args: *Args) -> None:
        """Its numbers go to the thread. (The base would load `inspect` to make sure that the callback is no coroutine.)"""
        self._take_wakeups()
        signal.signal(sig, _wait_for_delivery)
        signal.siginterrupt(sig, False)
        self._ending.discard(sig)
        self._handlers[sig] = lambda: callback(*args)

    def remove_signal_handler(self, sig: int) -> bool:
        self._ending.discard(sig)
        if self._handlers.pop(sig, None) is None:
            return False
        signal.signal(sig, self._interrupt_before if sig == signal.SIGINT else signal.SIG_DFL)
        return True

    def _take_wakeups(self) -> None:
        """The numbers of signals go to the thread."""
        if self._pipe < 0:
            read, self._pipe = os.pipe()
            os.set_blocking(self._pipe, False)
            self.restore_terminal = _terminal_restorer()
            self._watcher = threading.Thread(target=self._watch, args=(read,), name="signals", daemon=True)
            self._watcher.start()
        signal.set_wakeup_fd(self._pipe, warn_on_full_buffer=False)

    def _watch(self, pipe: int) -> None:
        while True:
            due = self._next_deadline()
            if _is_readable(pipe, None if due is None else due[1] - time.monotonic()):
                numbers = _read_numbers(pipe)
                if 0 in numbers:
                    break
                for number in filter(self._is_heard, numbers):
                    self._hear(number)
            elif (due := self._next_deadline()) and due[1] <= time.monotonic():
                self.restore_terminal()
                os.write(2, b"cru: ended while something in it, a plugin perhaps, did not come back\n")
                exit_now(128 + due[0], self)
        with suppress(OSError):
            os.close(pipe)

    def _is_heard(self, number: int) -> bool:
        """Whether a signal is for us. A plugin that sets a handler of its own (`signal.alarm` in Python) has it for itself."""
        return number in ALWAYS_HEARD or (number in self._handlers and signal.getsignal(number) is _wait_for_delivery)

    def _hear(self, number: int) -> None:
        now = time.monotonic()
        self._undelivered.append((number, now))
        self._interrupt_computations()
        if number in self._ending and self._deadline is None:
            self._deadline = number, now + LAST_SECONDS
        if not self.is_closed():
            self.call_soon_threadsafe(self._deliver, number)

    def begin_computation(self, pid: int) -> None:
        """The loop stands still until this process has ended: a signal ends it (cru.core.base.process.forked.ComputationOwner)."""
        self._computations[pid] = False
        self._interrupt_computations()

    @property
    def is_interrupted(self) -> bool:
        """Whether a signal that ends what runs waits for the loop, which runs something that does not come back to it."""
        return any(number in ENDING for number, _ in tuple(self._undelivered))

    def end_computation(self, pid: int) -> bool:
        return self._computations.pop(pid)

    def _interrupt_computations(self) -> None:
        if self.is_interrupted:
            for pid in tuple(self._computations):
                self._computations[pid] = True
                with suppress(ProcessLookupError):  # it has just ended
                    os.kill(pid, signal.SIGKILL)

    def _deliver(self, number: int) -> None:
        self._undelivered.clear()
        handler = self._handlers.get(number)
        if handler is not None:
            handler()

    def _next_deadline(self) -> tuple[int, float] | None:
        """The signal that ends the process, and when."""
        interrupts = 0
        for number, at in tuple(self._undelivered):
            interrupts += number == signal.SIGINT
            if (number in self._ending and number != signal.SIGINT) or interrupts == 2:
                due = number, at + DEAF_SECONDS
                return due if self._deadline is None else min(due, self._deadline, key=lambda deadline: deadline[1])
        return self._deadline


os.register_at_fork(after_in_child=WatchedEventLoop.leave_to_parent)


def _wait_for_delivery(number: int, frame: object) -> None:
    """The handler of every signal that is heard: what it means is done on the loop."""


def _ignore(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    """For a loop that is closed: that a task does not end was told when it was left."""


def exit_now(code: int, loop: asyncio.AbstractEventLoop) -> NoReturn:
    """End the process with the programs that it runs; nothing is asked to end. Imports nothing: what hangs may hold that lock."""
    if isinstance(loop, WatchedEventLoop):
        loop.restore_terminal()
        for kill in tuple(loop.children.values()):
            kill()
    for act in LAST_ACTS:
        act()
    os._exit(code)


def _read_numbers(pipe: int) -> bytes:
    """Numbers of signals; 0 if the loop is closed, or somebody has closed the pipe."""
    try:
        return os.read(pipe, 64) or b"\0"
    except OSError:
        return b"\0"


def _is_readable(descriptor: int, seconds: float | None) -> bool:
    """Wait until it can be read, at most so long (None: for ever). select() would refuse descriptors beyond 1,023."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(None if seconds is None else max(0.0, seconds) * 1000))


def _nothing() -> None:
    """For a process without a terminal."""


def _terminal_restorer() -> Callable[[], None]:
    """What sets the terminal as it is now, except that it shows lines: in a chat it does not any more."""
    if not os.isatty(0):
        return _nothing
    try:
        import termios

        before = termios.tcgetattr(0)
    except (ImportError, OSError, termios.error):
        return _nothing
    shown = before[3] & ~termios.NOFLSH | termios.ICANON | termios.ECHO | termios.ISIG
    mode = [before[0] | termios.ICRNL, *before[1:3], shown, *before[4:]]

    def restore() -> None:
        with suppress(termios.error):  # the terminal has gone
            termios.tcsetattr(0, termios.TCSANOW, mode)

    return restore
