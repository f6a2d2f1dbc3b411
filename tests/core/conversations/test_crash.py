"""kill -9 at every step that an operation makes on disk: nothing is lost, nothing is doubled, the next run goes on at once."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.core.conversations.support import run

# Kills a child before its n-th change to the disk, for every n; prints, for each n, what `look` finds afterwards.
_HARNESS = """
import json, os, shutil, sys
from pathlib import Path
from cru.core.conversations.expiry import read_mark, set_mark
from cru.core.conversations.home import Home
from cru.core.conversations.presence import Presence
from cru.core.conversations.store import FileContext
from cru.core.base.values.messages import Entry

top, operation, objects = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "objects"
CHANGES = {"os.rename", "os.remove", "os.truncate", "os.rmdir", "os.link", "os.mkdir"}

def arm(last):
    done = 0
    def step():
        nonlocal done
        done += 1
        if done == last:
            os.kill(os.getpid(), 9)
    def hook(event, args):
        if event in CHANGES or (event == "open" and isinstance(args[2], int) and args[2] & os.O_CREAT):
            step()
    for name in ("write", "pwrite"):
        real = getattr(os, name)
        setattr(os, name, lambda *a, real=real: (step(), real(*a))[1])
    sys.addaudithook(hook)

def fresh():
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir()
    if objects:
        bare = {"created_at": 1, "last_activity_at": 1, "destroy_after_seconds_inactive": 0, "destroy_at": 0}
        (top / "state.json").write_text(json.dumps({"contexts": [{"name": "one", **bare, "destroy_at": 5}]}))
    home = Home(top)
    home.open("one").append(Entry("1", 1, content="said"))
    home.switch("one")
    if not objects:
        set_mark(top, home.path / "contexts/one", at=5)

def work(home):
    if operation == "rename":
        home.rename("one", "two")
    elif operation == "delete":
        home.delete("one")
    else:
        context = home.find("one")
        seat = Presence(context.folder, "crash")
        with context.lock("crash"):
            context.append(Entry("2", 2, content="more"))
        seat.leave()

def look():
    home = Home(top)
    found = {"names": home.names(), "current": home.current, "expiring": list(home.expiring)}
    for name in filter(home.exists, home.names()):
        found[name] = [entry.content for entry in home.find(name).entries()]
    made = home.open("one")  # as the next run on that name would
    found["due"] = read_mark(top, made.folder).is_due
    with made.lock("next"):
        made.append(Entry("3", 3, content="next"))
    home.switch("one")
    found["deleted"] = home.delete("one")
    found["left"] = sorted(os.listdir(top / "contexts"))
    return found

results, number, killed = [], 0, True
while killed:
    number += 1
    fresh()
    child = os.fork()
    if not child:
        arm(number)
        work(Home(top))
        os._exit(0)
    killed = os.waitpid(child, 0)[1] == 9
    results.append(look())
print(json.dumps(results))
"""


def killed(tmp_path: Path, operation: str, shape: str) -> list[dict[str, object]]:
    """What was found after a kill at each step; the last one was not killed."""
    found = msgspec.json.decode(run(_HARNESS, tmp_path / "home", operation, shape), type=list[dict[str, object]])
    assert len(found) > 5, "the operation has steps, and they were seen"
    return found


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["names", "objects"])
def test_a_rename_is_done_or_not_done(tmp_path: Path, shape: str) -> None:
    found = killed(tmp_path, "rename", shape)
    for one in found:
        name = "two" if "two" in one else "one"
        assert (one["names"], one["current"], one["expiring"], one[name]) == ([name], name, [name], ["said"])
        assert one["due"] is (name == "one") and one["deleted"]
        assert one["left"] == (["two"] if name == "two" else [])
    assert "one" in found[0] and "two" in found[-1]


@pytest.mark.sample(1)
@pytest.mark.parametrize("shape", ["names", "objects"])
def test_a_deletion_leaves_no_mark_to_the_next_of_that_name(tmp_path: Path, shape: str) -> None:
    found = killed(tmp_path, "delete", shape)
    for one in found:
        there = bool(one.get("one"))
        assert one.get("one", []) in ([], ["said"]) and one["due"] is there
        assert one["deleted"] and one["left"] == []
    assert found[0]["one"] == ["said"] and "one" not in found[-1]


def test_a_turn_never_blocks_the_next_one(tmp_path: Path) -> None:
    found = killed(tmp_path, "turn", "names")
    for one in found:
        assert one["one"] in (["said"], ["said", "more"]) and one["deleted"]
    assert found[-1]["one"] == ["said", "more"]
