"""The trace over the time: its bytes are bounded, what is left of it can be read, and reading costs no more than it must."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import msgspec
import pytest
from tests.core.turn.support import Ext, World, always

from cru.core.conversations.line_file import RecordLimits
from cru.core.events.answers import Answer
from cru.core.models.scripted import ScriptedModel
from cru.core.records import requests as rebuild
from cru.core.records.trace import RecordedTrace, last_request
from cru.core.turn import recorder
from cru.core.turn.spans import sweep_spans

LIMITS = {"record_file_mb": 0.004, "record_files": 3}
ROOM = int(0.004 * (1 << 20)) * 3


def disk_bytes(folder: Path, *patterns: str) -> int:
    return sum(path.stat().st_size for pattern in patterns for path in folder.glob(pattern))


@pytest.mark.slow
def test_the_bytes_of_records_are_bounded_however_many_turns_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "SWEEPING", "40")  # each fourth new text: there are few in a test
    seen = Ext({"turn:complete": always(Answer(note="x" * 100))})
    world = World(tmp_path, "loop: yes\ntext: done\n", seen, settings=LIMITS)
    store, sizes = world.built.store, []
    for number in range(80):
        store.write_text("todos.md", f"- [ ] task {number} {'.' * 500}")
        world.run("go")
        sizes.append(disk_bytes(store.folder, "trace.jsonl*", "journal.jsonl*", "spans/*"))
    assert max(sizes) < 3 * ROOM + 8000, "trace, journal and spans, and eight new texts"
    assert max(sizes[40:]) <= max(sizes[:40]) + 2000
    assert len(list(store.folder.glob("trace.jsonl*"))) == len(list(store.folder.glob("journal.jsonl*"))) == 3


def test_what_is_left_is_read_over_all_files_and_the_last_turn_is_rebuilt_to_the_byte(tmp_path: Path) -> None:
    world = World(tmp_path, "loop: yes\ncall: ls {}\n---\ntext: done\n", settings=LIMITS)
    for _ in range(12):
        world.run("go")
    folder = world.built.store.folder
    with RecordedTrace(folder) as trace:
        assert trace.problems == [] and 3 <= len(trace.turns) < 12
        turn = trace.lines(trace.turns[-1])
        assert [line.kind for line in turn if line.kind not in ("states", "waits")] == [
            "leg",
            "request",
            "reply",
            "request",
            "reply",
            "end",
        ]
        kinds = [[line.kind for line in trace.lines(place)] for place in trace.turns]
        assert all(turn.count("request") == 2 and turn[-1] in ("end", "states") for turn in kinds)
        assert trace.turns_with_requests() == [*range(len(trace.turns))]
    line = rebuild.request_line(turn, 2)
    request = rebuild.rebuild_request(line, world.built.store.everything(), folder)
    assert rebuild.encode_request(line, request, ScriptedModel(world.path / "script.txt"))[1]
    last = last_request(folder)
    assert last is not None and last.data["sha"] == line.sha


def test_texts_that_are_in_use_stay_however_old_they_are(tmp_path: Path) -> None:
    world = World(tmp_path, "loop: yes\ntext: done\n")
    world.run("one")
    spans = world.built.store.folder / "spans"
    texts = {path.name: path.read_bytes() for path in spans.iterdir()}
    for path in spans.iterdir():
        os.utime(path, (1, 1))
    (spans / "0000").write_bytes(b"unused")
    (spans / "0001.77").write_bytes(b"half-written")
    for name in ("0000", "0001.77"):
        os.utime(spans / name, (1, 1))
    world.run("two")
    sweep_spans(spans, RecordLimits())
    assert {path.name: path.read_bytes() for path in spans.iterdir()} == texts


def test_those_that_were_not_used_for_the_longest_time_go_first(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number:02}").write_bytes(b"x" * 100)
        os.utime(tmp_path / f"{number:02}", (1000 + number, 1000 + number))
    sweep_spans(tmp_path, RecordLimits(1000, 2, 0))
    assert len(list(tmp_path.iterdir())) == 20, "there is room for all"
    sweep_spans(tmp_path, RecordLimits(500, 2, 0))
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{number:02}" for number in range(13, 20)]
    sweep_spans(tmp_path / "nothing", RecordLimits())


@pytest.mark.slow
def test_a_long_trace_is_read_once_and_of_it_only_the_turn_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "trace.jsonl").open("wb") as file:
        for number in range(4000):
            leg = {"k": "leg", "v": 1, "turn": f"t{number}", "ref": "", "source": "user", "run": "r", "time": number}
            request = recorder.RequestLine(1, f"t{number}", 1, "p", "m", "", (), "", {"filler": "x" * 2000}, "", 1, 1.0)
            file.write(msgspec.json.encode(leg) + b"\n" + msgspec.json.encode(request) + b"\n")
    size = (tmp_path / "trace.jsonl").stat().st_size
    read = 0
    real = os.pread

    def pread(fd: int, count: int, at: int) -> bytes:
        nonlocal read
        data = real(fd, count, at)
        read += len(data)
        return data

    monkeypatch.setattr(os, "pread", pread)
    tracemalloc.start()
    try:
        with RecordedTrace(tmp_path) as trace:
            lines = trace.lines(trace.turns[-1])
            peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(trace.turns) == 4000 and [line.kind for line in lines] == ["leg", "request"]
    assert size <= read <= size + 10_000
    assert peak < size / 3, peak
    read = 0
    assert last_request(tmp_path) is not None
    assert read < 20_000


def test_lines_torn_anywhere_are_told_and_take_nothing_with_them(tmp_path: Path) -> None:
    whole = (
        b'{"k":"leg","v":1,"turn":"a","ref":"","source":"","run":"r","time":1}\n'
        b'{"k":"end","turn":"a","time":1,"cause":"","counts":{},"error":""}\n'
    )
    for end in range(1, len(whole) - 1):
        if whole[end - 1 : end + 1] in (b"}\n", b"\n{"):
            continue  # between two lines
        torn = whole[:end].rpartition(b"\n")[2]
        if torn.endswith(b"}"):
            continue  # it is looked into when its turn is shown
        (tmp_path / "trace.jsonl").write_bytes(
            whole.replace(b'"a"', b'"z"') + torn + b"\n" + whole.replace(b'"a"', b'"b"')
        )
        with RecordedTrace(tmp_path) as trace:
            assert [problem.line for problem in trace.problems] == [3], torn
            assert [place.turn for place in trace.turns if place.turn != "a"] == ["z", "b"], torn
            assert [line.kind for line in trace.lines(trace.turns[-1])] == ["leg", "end"]
    (tmp_path / "trace.jsonl").write_bytes(whole[:-1])
    with RecordedTrace(tmp_path) as trace:
        assert trace.problems == [] and [line.kind for line in trace.lines(trace.turns[0])] == ["leg", "end"]
