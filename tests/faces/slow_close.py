#!/usr/bin/env python3
"""The real command, which looks for results all the time and at length, and whose database takes a while to close."""

import sys
import time

from cru.faces.cli.entry import run_and_exit
from cru.faces.cli.fleet import batch_face
from cru.features.fleet.database import SqliteDatabase
from cru.features.fleet.queue import WorkQueue
from cru.features.fleet.records import TaskRow

batch_face.LOOK_SECONDS = 0.001
close, look = SqliteDatabase.close, WorkQueue.finished_since


def close_slowly(database: SqliteDatabase) -> None:
    close(database)
    time.sleep(0.3)


def look_slowly(queue: WorkQueue, batch: str, known: set[str]) -> list[TaskRow]:
    with queue.database.transaction():
        time.sleep(0.05)
    return look(queue, batch, known)


patches: dict[str, tuple[type, object]] = {
    "finished_since": (WorkQueue, look_slowly),
    "close": (SqliteDatabase, close_slowly),
}
for name, (owner, method) in patches.items():
    setattr(owner, name, method)
run_and_exit(sys.argv[1:])
