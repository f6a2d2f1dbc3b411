"""A turn in which every kind of guest writes something, on a disk that fails at a random step or under a kill or a power cut there.

The seed of each case is its number after SOAK_SEED, so a case that failed is played again by its name and that variable.
"""

from __future__ import annotations

import errno
import json
import os
import random
from pathlib import Path

import pytest
from tests.hostile import checks
from tests.hostile.programs import Behaviour
from tests.hostile.roads import ROADS, install
from tests.kit import HomeDir, cru
from tests.kit.faults import SPACE, Disk, Fault, disks_after, run_with

SEED = int(os.environ.get("SOAK_SEED") or 0)
CASES = 60
GUESTS = ("a cru hook before a call", "a plugin's tool")
ERRORS = (errno.EIO, errno.ENOSPC, errno.EROFS, errno.EMFILE, errno.EDQUOT)
SCRIPT = """loop: yes
by: order
text: looking
call: rude {}
call: bash {"command": "echo x"}
call: write {"file_path": "a.txt", "content": "x"}
call: update_todos {"content": "x"}
---
text: all is well
"""
STATE = """
local n = 0
cru.on("tool:completed", function()
  n = n + 1
  cru.state.set("n", n)
  cru.storage.set("kind", "key", tostring(cru.timer.clock()))
end)
"""


def prepare(home: HomeDir) -> Disk:
    """A context with a turn, a hook, a plugin that is a program, one that keeps state, and a message that waits."""
    for name in GUESTS:
        install(home, ROADS[name], name, Behaviour("answer('x' * 50_000)"), "")
    (home.cru / "plugins" / "keeps.lua").write_text(STATE)
    (home.project / "script.txt").write_text(SCRIPT)
    home.configure(f'mode = "trust"\nmodel = "scripted:{home.project / "script.txt"}"\n')
    assert cru("before", home=home).code == 0
    (home.context() / "inbox.jsonl").write_text('{"from":"me","to":"default","content":"a letter"}\n')
    return Disk.read(home.cru)


def check_disk(home: HomeDir, what: str) -> None:
    """The next run works, and what was said before is there."""
    assert checks.is_json_lines(home.context() / "context.jsonl") or "torn" in what, what
    done = cru("again", home=home)
    assert done.code == 0 and done.out.endswith("all is well\n"), (what, done)
    checks.check_messages(done, (0,))
    said = [e["content"] for e in home.log() if e["entry_type"] == "message" and e.get("role") == "user"]
    assert [text for text in said if text in ("before", "again")] == ["before", "again"], what
    letters = sum("a letter" in str(e["content"]) for e in home.log() if e["entry_type"] == "message_resolved")
    assert letters == 1, what


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.parametrize("case", range(CASES))
def test_a_disk_that_fails_under_guests(home: HomeDir, case: int) -> None:
    chance = random.Random(f"{SEED}/{case}")
    before = prepare(home)
    steps = len(run_with(Fault(), "go", home=home).changes)
    step = chance.randrange(1, steps + 1)
    fault = chance.choice(
        [Fault(kill=step)]
        + [Fault(fail=step, errno=number, lasting=lasting) for number in ERRORS for lasting in (False, True)]
        + [Fault(fail=chance.randrange(1, 20), errno=errno.ENOSPC, lasting=True, kinds=SPACE)]
    )
    before.write(home.cru)
    _make_runnable(home)
    run = run_with(fault, "go", home=home)
    what = f"SOAK_SEED={SEED} case {case}: {fault}"
    print(what)
    if not fault.kill:
        checks.check_messages(run.done, (0, 1))
    _make_runnable(home)
    check_disk(home, f"{what} torn")


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.parametrize("case", range(CASES // 6))
def test_a_power_cut_under_guests(home: HomeDir, case: int) -> None:
    chance = random.Random(f"{SEED}/{case}")
    before = prepare(home)
    changes = run_with(Fault(), "go", home=home).changes
    end = chance.randrange(1, len(changes) + 1)
    disks = list(disks_after(before, changes[:end]))
    what, disk = disks[-1 - chance.randrange(min(len(disks), 8))]
    print(f"SOAK_SEED={SEED} case {case}: {what}")
    disk.write(home.cru)
    _make_runnable(home)
    check_disk(home, f"{what} torn")


def _make_runnable(home: HomeDir) -> None:
    """Disk.write keeps no modes."""
    for path in (home.cru / "plugins").glob("rude*"):
        path.chmod(0o755)


@pytest.mark.slow
def test_the_guests_write_on_every_road(home: HomeDir) -> None:
    """So that the cases above are about something."""
    prepare(home)
    changes = run_with(Fault(), "go", home=home).changes
    written = {Path(change.to or change.path).name for change in changes if change.op in ("write", "rename")}
    assert {"context.jsonl", "journal.jsonl", "plugin-state.json", "inbox.jsonl", "trace.jsonl"} <= written, written
    assert any("tool_cache" in change.path for change in changes) and any("storage" in change.to for change in changes)
    assert json.loads((home.context() / "plugin-state.json").read_text())
