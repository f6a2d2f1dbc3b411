"""Which workers live: each beats in the database, and holds a lock on a file in its home that the kernel lets go of when it dies.

Times are the database's alone: clocks of machines may differ. A worker of the same home is known to be dead as soon as its file can be
locked; one of another machine once it has missed MISSED beats, judged only by a worker that has beaten on time itself for so long, so that
nobody judges who was stopped himself, or had no database.
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from cru.core.base.files.atomic import create_file
from cru.core.base.files.regular import PRIVATE, make_private_folder
from cru.core.conversations.entries import new_id
from cru.features.fleet import HomeCopied, WorkerReplaced
from cru.features.fleet.queue import WorkQueue, bury

MISSED = 4
"""Beats without which a worker counts as dead."""


LOOKS, LOOK_SECONDS = 5, 0.2
"""For the file of another worker of the same home."""
HOME_ID = "home-id"


class DeadWorker(Struct, frozen=True):
    """A worker that is gone. beat: its last; host: where it ran; why: how that is known."""

    id: str
    host: str
    beat: int
    why: str


class WorkerRegistry:
    """This worker among the others. `seconds`: between two beats."""

    def __init__(self, queue: WorkQueue, folder: Path, seconds: float) -> None:
        self.host = socket.gethostname()
        self.id = f"{self.host}-{os.getpid()}-{new_id()[:8]}"
        self._queue = queue
        self._folder = folder
        self._seconds = seconds
        self._lock = -1
        self._steady_since = 0.0
        self._last_beat = 0.0

    def join(self) -> None:
        """Be known from now on. Raises QueueUnavailable, OSError, HomeCopied."""
        if self._lock < 0:
            make_private_folder(self._folder)
            self._lock = os.open(self._folder / self.id, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        with self._queue.database.transaction() as run:
            run(
                "INSERT INTO cru_workers VALUES (:id, :host, :pid, :home, {now}, :interval)",
                id=self.id, host=self.host, pid=os.getpid(), home=self._queue.home, interval=int(self._seconds * 1000),
            )  # fmt: skip
        self._steady_since = self._last_beat = time.monotonic()
        if any(map(self._is_of_a_copy, self._of_this_home())):
            self.leave()
            raise HomeCopied(
                f"a worker of another folder has the id of this home ({self._folder.parent / HOME_ID}): one of them is a copy, "
                "and has not the conversations of the other",
                "delete that file in the copy; both may take the tasks of a batch that is --shared",
            )

    def _of_this_home(self) -> list[str]:
        """Other workers that beat with the id of this home."""
        with self._queue.database.transaction() as run:
            rows = run(
                "SELECT id FROM cru_workers WHERE id <> :id AND home = :home AND {now} - beat <= :missed * interval_ms",
                id=self.id, home=self._queue.home, missed=MISSED,
            )  # fmt: skip
        return [row[0] for row in rows]

    def _is_of_a_copy(self, worker: str) -> bool:
        """Whether its file is not here, and that is not because it is just leaving."""
        for _ in range(LOOKS):
            if (self._folder / worker).exists():
                return False
            time.sleep(LOOK_SECONDS)  # in the thread of the queue; a network's file system may be late
        return worker in self._of_this_home()

    def beat(self) -> None:
        """Raises WorkerReplaced if others took this worker for dead."""
        with self._queue.database.transaction() as run:
            rows = run("UPDATE cru_workers SET beat = {now} WHERE id = :id RETURNING id", id=self.id)
        if not rows:
            raise WorkerReplaced(
                "others took this worker for dead (was it stopped, or without its database?) and have its tasks",
                "the same command again takes part again",
            )
        now = time.monotonic()
        if now - self._last_beat > 2 * self._seconds:
            self._steady_since = now
        self._last_beat = now

    def find_dead(self) -> list[DeadWorker]:
        """Workers that are gone and still stand in the queue."""
        with self._queue.database.transaction() as run:
            rows = run(
                "SELECT id, host, home, beat, {now} - beat > :missed * interval_ms FROM cru_workers WHERE id <> :id",
                id=self.id, missed=MISSED,
            )  # fmt: skip
        is_steady = time.monotonic() - self._steady_since > MISSED * self._seconds
        dead: list[DeadWorker] = []
        for worker, host, home, beat, is_late in rows:
            if home == self._queue.home and self._lock_is_free(worker):
                dead.append(DeadWorker(worker, host, beat, "the worker was killed"))
            elif is_late and is_steady:
                dead.append(DeadWorker(worker, host, beat, f"the worker missed {MISSED} beats"))
        return dead

    def take_over(self, worker: DeadWorker) -> int:
        """Queue again what a dead worker had, once among all that see it dead; how many tasks."""
        with self._queue.database.transaction() as run:
            gone = run(
                "DELETE FROM cru_workers WHERE id = :id AND beat = :beat RETURNING id", id=worker.id, beat=worker.beat
            )
            rows = (
                run(
                    "SELECT batch, id, deaths, max_deaths, context FROM cru_tasks WHERE worker = :id AND state = 'running'",
                    id=worker.id,
                )
                if gone
                else []
            )
            for row in rows:
                bury(run, row, worker.id, worker.host, worker.why)
        if gone:
            self._drop_file(worker.id)
        return len(rows)

    def leave(self) -> None:
        """Be gone; what this worker still has is queued again. Raises QueueUnavailable."""
        with self._queue.database.transaction() as run:
            run(
                "UPDATE cru_tasks SET state = 'queued', worker = '' WHERE worker = :id AND state = 'running'",
                id=self.id,
            )
            run("DELETE FROM cru_workers WHERE id = :id", id=self.id)
        self._drop_file(self.id)

    def close(self) -> None:
        """Let go of the lock: without a `leave` others see that this worker is gone, and take over."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _drop_file(self, worker: str) -> None:
        """Of a worker that is in no table any more; one that stays says nothing to anybody."""
        with suppress(OSError):
            (self._folder / worker).unlink()

    def _lock_is_free(self, worker: str) -> bool:
        """Whether the worker's file is there, and nobody holds it."""
        try:
            handle = os.open(self._folder / worker, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        finally:
            os.close(handle)
        return True


def home_id(folder: Path) -> str:
    """The id of a home, made if it has none: machines that share the home share it."""
    path = folder / HOME_ID
    if not path.exists():
        make_private_folder(folder)
        create_file(path, new_id().encode())
    return path.read_text().strip()
