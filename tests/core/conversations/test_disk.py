"""A full disk and a read-only home, for real: a small tmpfs, and a process without root's right to write everywhere."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from tests.core.conversations.support import fresh, run, said
from tests.kit.sandbox import needs_mounts

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="dropping capabilities needs root")

_FULL = """
import json, os, sys
from pathlib import Path
from cru.core.conversations import StoreUnwritable
from cru.core.conversations.home import Home
from cru.core.conversations.inbox import make_message, read_inbox
from cru.core.conversations.line_file import LineFile
from cru.core.conversations.store import FileContext
from cru.core.base.values.messages import Entry

def attempt(call, *args):
    try:
        call(*args)
    except StoreUnwritable as error:
        return str(error)
    return "written"

home = Home(Path(sys.argv[1]) / "home")
context = home.open("desk")
context.append(Entry("first", 1, content="x" * 3000))
context.write_text("todos.md", "old")
ballast = open(Path(sys.argv[1]) / "ballast", "wb", buffering=0)
try:
    while True:
        ballast.write(bytes(4096))
except OSError:
    pass
out = {"big": attempt(context.append, Entry("lost", 1, content="y" * 200000))}
out["text"] = attempt(context.write_text, "todos.md", "z" * 9000)
out["todos"] = context.read_text("todos.md")
out["send"] = attempt(home.send, make_message("a", "desk", "m" * 9000))
lines = LineFile(context.folder / "journal.jsonl")
out["line"] = attempt(lines.write, b"l" * 9000 + b"\\n")
out["state"] = attempt(home.switch, "desk")
ballast.truncate(0)
context.append(Entry("second", 2, content="fits"))
lines.write(b"fits\\n")
home.send(make_message("a", "desk", "fits"))
out["entries"] = [e.id for e in context.entries()]
later = FileContext(context.folder)
out["problems"] = [p.line for p in later.refresh()]
out["later"] = [e.id for e in later.entries()]
out["journal"] = (context.folder / "journal.jsonl").read_bytes().endswith(b"\\nfits\\n") or "only"
out["inbox"] = [m.content for m in read_inbox(later.folder)[0]]
out["left"] = [n for n in os.listdir(context.folder) if n.endswith(".tmp")]
print(json.dumps(out))
"""


@needs_mounts
def test_a_full_disk_is_an_error_with_a_hint_and_nothing_is_damaged(tmp_path: Path) -> None:
    mount = f'mount -t tmpfs -o size=128k none {tmp_path} && exec "$@"'
    out = msgspec.json.decode(run(_FULL, tmp_path, wrap=("unshare", "-m", "sh", "-c", mount, "sh")))
    for key in ("big", "text", "send", "line", "state"):
        assert "No space left on device" in out[key] and "free some space" in out[key], key
    assert out["todos"] == "old"
    assert out["entries"] == out["later"] == ["first", "second"]
    assert out["problems"] in ([], [2])
    assert out["inbox"] == ["fits"] and out["left"] == []


_DELETE = """
import sys
from pathlib import Path
from cru.core.conversations.home import Home
from cru.core.base.values.messages import Entry
top, home = Path(sys.argv[1]), Home(Path(sys.argv[1]) / "home")
for name in ("desk", "other"):
    home.open(name).append(Entry("1", 1, content="x" * 9000))
    home.switch(name)
number = 0
try:
    while True:
        number += 1
        (top / f"ballast{number}").write_bytes(bytes(4096) if sys.argv[2] == "bytes" else b"")
except OSError as error:
    print(error.strerror)
print(home.delete("other"), home.names(), home.current)
"""


@needs_mounts
@pytest.mark.parametrize(("lacking", "size"), [("bytes", "size=128k"), ("files", "size=1m,nr_inodes=50")])
def test_on_a_full_disk_a_context_can_be_deleted(tmp_path: Path, lacking: str, size: str) -> None:
    mount = f'mount -t tmpfs -o {size} none {tmp_path} && exec "$@"'
    said = run(_DELETE, tmp_path, lacking, wrap=("unshare", "-m", "sh", "-c", mount, "sh"))
    assert said.splitlines() == ["No space left on device", "True ['desk'] desk"]


def test_a_write_that_stops_half_way_is_noticed_and_the_next_entry_starts_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.core.conversations.support import again, texts

    from cru.core.conversations import StoreUnwritable

    context = fresh(tmp_path)
    context.append(said("before"))
    real = os.write
    budget = [40]

    def almost_full(fd: int, data: bytes) -> int:
        if budget[0] == 0:
            raise OSError(28, "No space left on device")
        part = data[: budget[0]]
        budget[0] -= len(part)
        return real(fd, part)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", almost_full)
        with pytest.raises(StoreUnwritable, match="No space left"):
            context.append(said("lost"))
    context.append(said("after"))
    assert texts(context.entries()) == texts(again(context).entries()) == ["before", "after"]


_READ_ONLY = """
import json, sys
from pathlib import Path
from cru.core.conversations import ContextError, StoreUnwritable
from cru.core.conversations.home import Home
from cru.core.conversations.inbox import make_message
from cru.core.base.values.messages import Entry

def attempt(call, *args):
    try:
        call(*args)
    except StoreUnwritable as error:
        return str(error)
    return "written"

home = Home(Path(sys.argv[1]))
context = home.open("desk")
out = {"problems": [p.message for p in context.refresh()], "entries": [e.content for e in context.entries()]}
out["current"] = home.current
out["summary"] = context.summary()
with context.inbox() as messages:
    out["inbox"] = len(messages)
out["append"] = attempt(context.append, Entry("a", 1))
out["switch"] = attempt(home.switch, "other")
out["open"] = attempt(home.open, "other")
out["send"] = attempt(home.send, make_message("a", "desk", "m"))
out["text"] = attempt(context.write_text, "todos.md", "x")
out["new"] = attempt(home.resolve, "new")
out["rename"] = attempt(home.rename, "desk", "other")
out["delete"] = attempt(home.delete, "desk")
print(json.dumps(out))
"""
_DROP = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search")


@needs_root
@pytest.mark.parametrize("meta", [True, False])
def test_a_read_only_home_can_be_read_and_every_write_is_a_clear_error(tmp_path: Path, meta: bool) -> None:
    context = fresh(tmp_path)
    context.append(said("hello"))
    home = tmp_path / "home"
    if not meta:
        (context.folder / "context_meta.json").unlink()
    os.chmod(context.folder / "context.jsonl", 0o400)
    for folder in (context.folder, home / "contexts", home):
        os.chmod(folder, 0o500)
    try:
        out = msgspec.json.decode(run(_READ_ONLY, home, wrap=_DROP))
    finally:
        for folder in (home, home / "contexts", context.folder):
            os.chmod(folder, 0o700)
    assert out["entries"] == ["hello"] and out["inbox"] == 0
    assert len(out["problems"]) == (0 if meta else 1)
    for key in ("append", "switch", "open", "send", "text", "new", "rename", "delete"):
        assert "Permission denied" in out[key] and "--home" in out[key], (key, out[key])
