#!/usr/bin/env python3
"""What a long conversation costs: CPU time of opening it in a process of its own, time of appending to it.

usage: python bench/contexts.py [ENTRIES…]     (in an environment where cru is installed; default 1000 10000 100000)
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from cru.core.conversations.entries import new_id, now
from cru.core.conversations.store import FileContext
from cru.core.base.values.messages import Entry

REPEATS = 5
APPENDS = 500
MEASURED = f"""
import sys, time
from pathlib import Path
from cru.core.conversations.store import FileContext
from cru.core.turn import history
from cru.core.base.values.messages import Entry
begin = time.process_time()
context = FileContext(Path(sys.argv[1]))
seen = context.visible()
made = history.of(context.entries(), seen)
opened = time.process_time() - begin
times = []
for number in range({APPENDS}):
    begin = time.perf_counter()
    entry = Entry(f"bench-{{number}}", 1, "user", "desk", "x" * 100, "message", "user")
    context.append(entry)
    made.add(entry)
    times.append(time.perf_counter() - begin)
print(opened * 1000, sorted(times)[len(times) // 2] * 1e6)
"""


def leg(number: int) -> tuple[Entry, ...]:
    """A prompt, its resolution, its answer and its end, as a leg logs them."""
    prompt, reply, time = new_id(), new_id(), now()
    about = {"ref": prompt}
    said = {"model": "mock:m", "reply": reply, "input_tokens": number}
    return (
        Entry(
            prompt,
            time,
            "user",
            "desk",
            f"question {number} {'x' * 60}",
            "message",
            "user",
            metadata={"source": "user"},
        ),
        Entry(new_id(), time, "system", "desk", "", "message_resolved", "system", metadata=about),
        Entry(reply, time, "desk", "user", f"answer {number} {'y' * 150}", "message", "agent", metadata=said),
        Entry(new_id(), time, "system", "desk", "", "leg_ended", "system", metadata={**about, "cause": "done"}),
    )


def main() -> None:
    for count in [int(word) for word in sys.argv[1:]] or [1000, 10_000, 100_000]:
        with tempfile.TemporaryDirectory() as folder:
            context = FileContext(Path(folder))
            context.append(*(entry for number in range(count // 4) for entry in leg(number)))
            context.close()
            runs = [
                subprocess.run([sys.executable, "-c", MEASURED, folder], capture_output=True, text=True, check=True)
                for _ in range(REPEATS)
            ]
            opened, appended = zip(*(map(float, run.stdout.split()) for run in runs), strict=True)
            print(
                f"{count:>7} entries: open {min(opened):6.1f} ms (least of {REPEATS}), append {min(appended):5.1f} µs (median)"
            )


if __name__ == "__main__":
    main()
