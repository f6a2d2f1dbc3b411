"""A power cut after a finished turn, and at any step of it: files that cru wrote are whole, and what /undo needs is kept."""

from __future__ import annotations

import errno
import json

import pytest
from tests.kit import HomeDir, cru
from tests.kit.faults import Disk, Fault, cut_power, disks_after, run_with

CONFIG = 'model = "scripted:script.txt"\nmode = "trust"\n'
PLUGIN = """
from cru import fs

def host_write(args):
    fs.write("a", "new\\n")

def host_append(args):
    fs.append("a", "new\\n")

def host_copy(args):
    fs.write("b", "new\\n")
    fs.copy("b", "a")

def host_rename(args):
    fs.write("b", "new\\n")
    fs.rename("b", "a")

TOOLS = {run.__name__: {"desc": "writes", "params": [], "fn": run} for run in (host_write, host_append, host_copy, host_rename)}
"""
ROADS: dict[str, tuple[str, dict[str, str], str]] = {
    "write": ("write", {"file_path": "a", "content": "new\n"}, "new\n"),
    "edit": ("edit", {"file_path": "a", "old_string": "old", "new_string": "new"}, "new\n"),
    "a new file": ("write", {"file_path": "c/d", "content": "new\n"}, "new\n"),
    "cru.fs.write": ("host_write", {}, "new\n"),
    "cru.fs.append": ("host_append", {}, "old\nnew\n"),
    "cru.fs.copy": ("host_copy", {}, "new\n"),
    "cru.fs.rename": ("host_rename", {}, "new\n"),
}
"""A tool, its arguments, and what its file has afterwards."""


@pytest.fixture
def desk(home: HomeDir) -> HomeDir:
    home.configure(CONFIG)
    (home.project / "a").write_text("old\n")
    return home


def play(desk: HomeDir, tool: str, args: dict[str, str]) -> None:
    (desk.project / "script.txt").write_text(f"call: {tool} {json.dumps(args)}\n---\ntext: done\n")
    if tool.startswith("host_"):
        (desk.cru / "plugins").mkdir()
        (desk.cru / "plugins" / "host.py").write_text(PLUGIN)


def lose_data(owner: str) -> bool:
    """What a journaling file system may do: names reach the disk, contents that were not synced do not."""
    return owner.endswith("/")


def lose_all(owner: str) -> bool:
    return False


@pytest.mark.sample(3)
@pytest.mark.parametrize("road", ROADS)
def test_after_a_turn_the_file_is_as_the_log_says_and_can_be_taken_back(desk: HomeDir, road: str) -> None:
    tool, args, after = ROADS[road]
    play(desk, tool, args)
    name, top = args.get("file_path", "a"), desk.path.parent
    before = Disk.read(top)
    run = run_with(Fault(), "go", home=desk, root=top)
    assert run.done.out == "done\n", run.done
    syncs = [change.path.rpartition("/")[2] for change in run.changes if change.op == "sync"]
    log_synced = len(syncs) - syncs[::-1].index("context.jsonl")
    assert any(path == name[-1] or path.startswith(f".{name[-1]}.") for path in syncs[:log_synced])
    for keeps in (lose_all, lose_data):
        if tool == "host_copy":  # the copy itself is not recorded
            break
        cut_power(before, run.changes, keeps).write(top)
        assert (desk.project / name).read_text() == after
        if tool.startswith("host_"):
            continue
        assert cru("/undo", home=desk).code == 0
        assert not (desk.project / name).exists() if name == "c/d" else (desk.project / name).read_text() == "old\n"


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["write", "edit"])
def test_at_no_step_of_a_turn_a_file_of_the_user_is_lost(desk: HomeDir, tool: str) -> None:
    _, args, after = ROADS[tool]
    play(desk, tool, args)
    top = desk.path.parent
    before = Disk.read(top)
    run = run_with(Fault(), "go", home=desk, root=top)
    states = set[str]()
    for what, disk in disks_after(before, run.changes):
        states.add(disk.files["project/a"].decode())
        assert states <= {"old\n", after}, what
    assert states == {"old\n", after}


@pytest.mark.sample(1)
@pytest.mark.parametrize("command", ["/undo", "/redo"])
def test_what_undo_and_redo_brought_back_survives_with_the_conversation(desk: HomeDir, command: str) -> None:
    play(desk, "write", ROADS["write"][1])
    top = desk.path.parent
    assert cru("go", home=desk).out == "done\n"
    if command == "/redo":
        assert cru("/undo", home=desk).code == 0
    before = Disk.read(top)
    run = run_with(Fault(), command, home=desk, root=top)
    assert run.done.code == 0, run.done
    for keeps in (lose_all, lose_data):
        cut_power(before, run.changes, keeps).write(top)
        assert (desk.project / "a").read_text() == ("old\n" if command == "/undo" else "new\n")
        other = "/redo" if command == "/undo" else "/undo"
        assert cru(other, home=desk).code == 0, keeps
        assert (desk.project / "a").read_text() == ("new\n" if command == "/undo" else "old\n")


def test_a_saved_output_that_the_log_names_is_there(desk: HomeDir) -> None:
    play(desk, "bash", {"command": "seq 20000"})
    top = desk.path.parent
    before = Disk.read(top)
    run = run_with(Fault(), "go", home=desk, root=top)
    cut_power(before, run.changes, lose_data).write(top)
    [saved] = (desk.context() / "tool_cache").iterdir()
    assert str(saved) in json.dumps(desk.log()) and saved.read_text().endswith("20000")


def test_the_first_turn_keeps_the_id_of_its_conversation(desk: HomeDir) -> None:
    play(desk, "write", ROADS["write"][1])
    top = desk.path.parent
    before = Disk.read(top)
    run = run_with(Fault(), "go", home=desk, root=top)
    id_before = json.loads((desk.context() / "context_meta.json").read_text())["session_id"]
    for keeps in (lose_all, lose_data):
        cut_power(before, run.changes, keeps).write(top)
        assert json.loads((desk.context() / "context_meta.json").read_text())["session_id"] == id_before


@pytest.mark.sample(1)
@pytest.mark.parametrize("place", ["project/.a.", "changes.jsonl", "/blobs/"])
def test_a_disk_that_fails_to_sync_is_reported_before_the_model_sees_another_result(desk: HomeDir, place: str) -> None:
    calls = [f"call: {tool} {json.dumps(args)}" for tool, args, _ in (ROADS["write"], ROADS["a new file"])]
    play(desk, *ROADS["write"][:2])
    (desk.project / "script.txt").write_text("\n---\n".join([*calls, "text: done"]))
    top = desk.path.parent
    before = Disk.read(top)
    syncs = [change.path for change in run_with(Fault(), "go", home=desk, root=top).changes if change.op == "sync"]
    number = next(number for number, path in enumerate(syncs, 1) if place in path)
    before.write(top)
    run = run_with(Fault(fail=number, errno=errno.EIO, kinds=("sync",)), "go", home=desk, root=top)
    log = json.dumps(desk.log())
    if place == "project/.a.":  # nothing was renamed, so the tool failed and the turn goes on
        assert "cannot write `a`: Input/output error" in log and (desk.project / "a").read_text() == "old\n"
    else:
        assert run.done.code == 1 and place in run.done.err and "Input/output error" in run.done.err
        assert log.count('"tool_result"') < 3 and "done" not in run.done.out
