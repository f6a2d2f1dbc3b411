"""Contents and changes on disk: private, whole, bounded."""

from __future__ import annotations

import hashlib
import os
import stat
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from cru.core.revisions import NotKept, StoreFailed, UndoSettings
from cru.core.revisions.keeper import ChangeKeeper
from cru.core.revisions.records import (
    MISSING,
    UNKNOWN,
    ChangedBy,
    ChangeOrigin,
    FileChange,
    FileKind,
    PathState,
    decode_changes,
    encode_records,
    make_change,
)
from cru.core.revisions.restore import StepKind, apply, plan, summarize
from cru.core.revisions.retention import DAY, select_kept
from cru.core.revisions.store import RevisionStore, project_folder

BY = ChangeOrigin(ChangedBy.TOOL, "session", "main", "prompt-1", "write", "call_1")
UNDO = ChangeOrigin(ChangedBy.UNDO)


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Bench:
    """A store, and files that are changed through its keeper."""

    def __init__(self, path: Path, settings: UndoSettings | None = None) -> None:
        self.told: list[str] = []
        self.store = RevisionStore(path / "home/revisions/project", settings)
        self.keeper = ChangeKeeper(self.store, self.told.append)
        self.files = path / "files"
        self.files.mkdir()

    def path(self, name: str) -> str:
        return os.path.realpath(self.files / name)

    def write(self, name: str, data: bytes, origin: ChangeOrigin = BY) -> Path:
        file = self.files / name
        self.keeper.keep(self.path(name), data, origin)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        return file

    def back(self, *, backwards: bool = True) -> list[StepKind]:
        """Take everything back (or bring it again); what each file's step was."""
        changes = [c for c in self.store.changes() if c.origin.by in (ChangedBy.TOOL, ChangedBy.COMMAND)]
        steps = plan(self.store, summarize(changes), backwards=backwards)
        assert apply(self.store, [s for s in steps if s.kind is StepKind.WRITE], UNDO).failed == ()
        return [step.kind for step in steps]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_what_was_there_comes_back_and_goes_again(bench: Bench) -> None:
    file = bench.files / "a"
    file.write_bytes(b"zero\xff\r\n")
    file.chmod(0o640)
    bench.write("a", b"one")
    bench.write("a", b"two")
    bench.write("new/deep/b", b"fresh")
    assert bench.back() == [StepKind.WRITE] * 2
    assert file.read_bytes() == b"zero\xff\r\n" and stat.S_IMODE(file.stat().st_mode) == 0o640
    assert not (bench.files / "new").exists(), "folders that were made go, too"
    assert bench.back(backwards=False) == [StepKind.WRITE] * 2
    assert file.read_bytes() == b"two" and (bench.files / "new/deep/b").read_bytes() == b"fresh"
    assert bench.back(backwards=False) == [StepKind.DONE] * 2
    assert bench.told == []


def test_everything_is_private(bench: Bench) -> None:
    bench.files.joinpath("a").write_text("secret")
    bench.write("a", b"x")
    places = [bench.store.folder.parent, bench.store.folder, *bench.store.folder.rglob("*")]
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in places}
    assert len(places) == 9 and all(mode & 0o077 == 0 for mode in modes.values()), modes


def replace_by_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def untouched(file: Path) -> tuple[int, ...] | None:
    """What every change of a file changes, and a look at it does not: the time of the last access is left out."""
    if not os.path.lexists(file):
        return None
    status = os.lstat(file)
    return status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda file: file.write_bytes(b"theirs"), StepKind.CHANGED),
        (lambda file: file.unlink(), StepKind.CHANGED),
        (lambda file: file.chmod(0o777), StepKind.CHANGED),
        (lambda file: (file.unlink(), file.symlink_to("elsewhere")), StepKind.CHANGED),
        (lambda file: (file.unlink(), file.mkdir()), StepKind.CHANGED),
        (replace_by_pipe, StepKind.CHANGED),
        (lambda file: file.write_bytes(b"zero"), StepKind.DONE),
    ],
)
def test_what_somebody_else_changed_since_is_never_touched(bench: Bench, change: object, kind: StepKind) -> None:
    (bench.files / "a").write_bytes(b"zero")
    file = bench.write("a", b"one")
    assert callable(change)
    change(file)
    before = untouched(file)
    assert bench.back() == [kind]
    assert untouched(file) == before


def test_what_someone_else_changed_between_two_changes_is_not_taken_back(bench: Bench) -> None:
    file = bench.files / "a"
    file.write_bytes(b"zero")
    bench.write("a", b"one")
    file.write_bytes(b"theirs")
    bench.write("a", b"theirs and two")
    [step] = plan(bench.store, summarize(bench.store.changes()), backwards=True)
    [foreign] = step.foreign
    assert step.kind is StepKind.CHANGED
    assert [bench.store.content(state) for state in (foreign.start, foreign.end)] == [b"one", b"theirs"]


def test_a_folder_that_leads_elsewhere_now_is_not_followed(bench: Bench, tmp_path: Path) -> None:
    bench.write("in/a", b"one")
    (bench.files / "in").rename(tmp_path / "outside")
    (bench.files / "in").symlink_to(tmp_path / "outside")
    assert bench.back() == [StepKind.LOST], "nobody who says that it may be overwritten means that file"
    assert (tmp_path / "outside/a").read_bytes() == b"one"


def test_a_folder_that_is_swapped_after_the_plan_is_not_followed(bench: Bench, tmp_path: Path) -> None:
    bench.write("in/a", b"one")
    steps = plan(bench.store, summarize(bench.store.changes()), backwards=True)
    (bench.files / "in").rename(tmp_path / "outside")
    (bench.files / "in").symlink_to(tmp_path / "outside")
    result = apply(bench.store, steps, UNDO)
    assert result.changed == () and "it was changed just now" in result.failed[0]
    assert (tmp_path / "outside/a").read_bytes() == b"one"


def test_links_come_back_as_links(bench: Bench) -> None:
    link = bench.files / "link"
    link.symlink_to("target\udcff")
    begun = bench.keeper.begin([str(link)], BY)
    link.unlink()
    link.write_bytes(b"a file now")
    bench.keeper.end(begun)
    assert bench.back() == [StepKind.WRITE] and os.readlink(link) == "target\udcff"
    assert bench.back(backwards=False) == [StepKind.WRITE] and link.read_bytes() == b"a file now"
    assert not link.is_symlink()


def test_names_that_are_no_text_are_kept(bench: Bench) -> None:
    name = os.fsdecode(b"caf\xe9\n")
    (bench.files / name).write_bytes(b"old")
    file = bench.write(name, b"new")
    [change] = bench.store.changes()
    assert change.file == str(file) and change.path.endswith("caf�\n")
    assert bench.back() == [StepKind.WRITE] and file.read_bytes() == b"old"


def test_what_is_too_large_is_named_and_left(tmp_path: Path) -> None:
    bench = Bench(tmp_path, UndoSettings(max_file_mb=1))
    big = bench.files / "big"
    big.write_bytes(bytes(1_100_000))
    bench.write("big", b"small")
    [step] = plan(bench.store, summarize(bench.store.changes()), backwards=True)
    assert (step.kind, step.why) == (StepKind.LOST, "too large to be kept (1,100,000 bytes)")
    with pytest.raises(NotKept, match="1,100,000 bytes is not kept"):
        bench.store.content(step.target)
    assert [p.read_bytes() for p in (bench.store.folder / "blobs").rglob("*") if p.is_file()] == [b"small"]


def test_a_large_file_is_not_replaced_by_an_undo_that_could_not_keep_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path, UndoSettings(max_file_mb=1))
    (bench.files / "a").write_bytes(b"small")
    file = bench.write("a", b"x")
    file.write_bytes(bytes(1_100_000))
    [step] = plan(bench.store, summarize(bench.store.changes()), backwards=True)
    assert step.kind is StepKind.CHANGED
    result = apply(bench.store, [step], UNDO)
    assert result.changed == () and "too large to be kept" in result.failed[0] and file.stat().st_size == 1_100_000


def test_a_call_that_was_killed_leaves_its_file_to_a_person(bench: Bench) -> None:
    file = bench.files / "a"
    file.write_bytes(b"old")
    bench.keeper.begin([str(file)], BY)
    [change] = bench.store.changes()
    assert (change.before.sha, change.after) == (sha(b"old"), UNKNOWN)
    assert bench.back() == [StepKind.DONE]
    file.write_bytes(b"half")
    assert bench.back() == [StepKind.CHANGED]


def test_a_damaged_content_is_not_brought_back(bench: Bench) -> None:
    (bench.files / "a").write_bytes(b"old")
    file = bench.write("a", b"new")
    digest = sha(b"old")
    blob = bench.store.folder / "blobs" / digest[:2] / digest[2:]
    blob.write_bytes(b"rot")
    steps = plan(bench.store, summarize(bench.store.changes()), backwards=True)
    assert "is damaged" in apply(bench.store, steps, UNDO).failed[0]
    assert file.read_bytes() == b"new"


def test_lines_that_are_none_are_passed_over(bench: Bench) -> None:
    bench.write("a", b"1")
    with (bench.store.folder / "changes.jsonl").open("ab") as file:
        file.write(b'{"id": "torn by a ki')
    bench.write("b", b"2")
    assert [os.path.basename(c.file) for c in bench.store.changes()] == ["a", "b"]
    assert decode_changes(b'{"v": 2}\nnull\n\xff\n') == ([], 3)


def test_a_change_is_read_as_it_was_written_and_as_the_first_version_wrote_it() -> None:
    state = PathState(FileKind.FILE, sha(b"x"), 1, 0o600)
    change = make_change("/a/b", state, MISSING, msgspec.structs.replace(BY, call="lone \udc80 surrogate"))
    [again], broken = decode_changes(encode_records([change]))
    assert broken == 0 and again.before == state and again.origin.call == "lone ? surrogate"
    golden = (
        b'{"id":"00ff","path":"/p/a.txt","before":{"kind":"file","sha":"ab","size":5,"mode":420},"after":{"kind":"missing","folders":1},'
        b'"origin":{"by":"tool","session":"s","context":"main","prompt":"p","tool":"write","call":"call_0_0"},"time":1795469938.5,"v":1}\n'
    )
    after = PathState(FileKind.MISSING, folders=1)
    origin = ChangeOrigin(ChangedBy.TOOL, "s", "main", "p", "write", "call_0_0")
    before = PathState(FileKind.FILE, "ab", 5, 0o644)
    assert decode_changes(golden)[0] == [FileChange("00ff", "/p/a.txt", before, after, origin, 1795469938.5)]


def changed(name: str, time: float, size: int = 1, prompt: str = "p", number: int = 0) -> FileChange:
    before = PathState(FileKind.FILE, f"{name}-{time}-{number}", size, 0o600)
    origin = msgspec.structs.replace(BY, prompt=prompt)
    return msgspec.structs.replace(make_change(f"/{name}", before, MISSING, origin), time=time)


def chain(name: str, prompt: str, numbers: range, time: float) -> list[FileChange]:
    """Changes of one turn of which each begins with what the one before it left."""
    made = [changed(name, time, prompt=prompt, number=number) for number in (*numbers, numbers.stop)]
    return [msgspec.structs.replace(one, after=two.before) for one, two in pairwise(made)]


def test_ten_of_each_file_stay_and_what_the_last_turns_need() -> None:
    many = [*chain("a", "early", range(30), 1), *chain("a", "late", range(30), 2), changed("b", 1)]
    kept = select_kept(many, UndoSettings(), 3)
    ids = [change.before.sha for change in kept]
    assert ids == ["a-1-0", "a-1-29", "a-2-0", *(f"a-2-{n}" for n in range(20, 30)), "b-1-0"]
    assert summarize(kept) == summarize(many), "what is dropped in between does not look like a change of someone else"


def test_what_someone_else_changed_within_a_turn_is_still_seen_after_cleaning() -> None:
    turn = [*chain("a", "turn", range(20), 1), *chain("a", "turn", range(30, 60), 1)]
    kept = select_kept(turn, UndoSettings(), 3)
    assert summarize(kept) == summarize(turn) and len(summarize(turn)) == 2 and len(kept) == 12


def test_age_and_size_are_bounded_the_oldest_goes_first() -> None:
    old = changed("old", 0)
    rest = [changed(f"f{n}", DAY * 31, 1 << 20) for n in range(5)]
    kept = select_kept([old, *rest], UndoSettings(max_total_mb=3), DAY * 31)
    assert [change.path for change in kept] == ["/f2", "/f3", "/f4"]


def test_cleaning_takes_contents_that_nobody_needs(tmp_path: Path) -> None:
    bench = Bench(tmp_path, UndoSettings(revisions=1))
    for number in range(5):
        bench.write("a", b"%d" % number, msgspec.structs.replace(BY, prompt=str(number)))
    left = bench.store.folder / "blobs/00"
    left.mkdir()
    (left / "killed.tmp").write_bytes(b"half")
    assert bench.store.clean(0) == 4
    assert sorted(p.read_bytes() for p in (bench.store.folder / "blobs").rglob("*") if p.is_file()) == [b"3", b"4"]
    assert bench.back() == [StepKind.WRITE] and (bench.files / "a").read_bytes() == b"3"


def test_a_long_session_is_bounded_before_its_end(tmp_path: Path) -> None:
    bench = Bench(tmp_path, UndoSettings(revisions=1, max_total_mb=1))
    for number in range(12):
        bench.write("a", os.urandom(100_000), msgspec.structs.replace(BY, prompt=str(number)))
    assert len(bench.store.changes()) <= 5


def test_a_store_that_cannot_be_written_is_told_once_and_stops_nobody(bench: Bench) -> None:
    bench.store.folder.parent.mkdir(parents=True)
    bench.store.folder.write_text("a file in its place")
    for _ in range(2):
        assert bench.write("a", b"x").read_bytes() == b"x"
    [text] = bench.told
    assert text.startswith("what is changed from now on may not be taken back by /undo: ")
    with pytest.raises(StoreFailed):
        bench.store.record(changed("a", 0))


def test_a_link_in_the_place_of_a_file_of_the_store_is_refused(bench: Bench, tmp_path: Path) -> None:
    bench.store.folder.mkdir(parents=True)
    (tmp_path / "victim").write_text("theirs")
    (bench.store.folder / "changes.jsonl").symlink_to(tmp_path / "victim")
    bench.write("a", b"x")
    assert len(bench.told) == 1 and (tmp_path / "victim").read_text() == "theirs"


def test_each_project_has_its_own_place(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "link").symlink_to("one")
    here = project_folder(tmp_path, tmp_path / "one")
    assert here == project_folder(tmp_path, tmp_path / "link") != project_folder(tmp_path, tmp_path / "two/one")
    assert here.name.startswith("one-") and project_folder(tmp_path, Path("/")).parent == tmp_path / "revisions"


def test_what_killed_runs_have_left_is_cleaned_by_the_next_one(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(40):
        bench.write("a", b"%d" % number)
    assert len(bench.store.changes()) == 40
    monkeypatch.setattr("cru.core.revisions.store.OVERFULL", 1000)
    ChangeKeeper(bench.store, bench.told.append)
    assert len(bench.store.changes()) == 11


def test_the_number_of_changes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cru.core.revisions.retention.MOST_CHANGES", 3)
    kept = select_kept([changed(f"f{n}", 1) for n in range(5)], UndoSettings(), 1)
    assert [change.path for change in kept] == ["/f2", "/f3", "/f4"]


def test_what_others_add_replace_or_take_away_is_read(bench: Bench) -> None:
    bench.write("a", b"1")
    other = RevisionStore(bench.store.folder, UndoSettings(revisions=1))
    assert len(other.changes()) == 1
    for number in range(4):
        bench.write("a", b"%d" % number)
    assert [c.id for c in other.changes()] == [c.id for c in bench.store.changes()] and len(other.changes()) == 5
    begun = bench.keeper.begin([bench.path("b")], BY)
    assert other.changes()[-1].after == UNKNOWN
    (bench.files / "b").write_bytes(b"b")
    bench.keeper.end(begun)
    assert [c.after.sha for c in other.changes()][-1] == sha(b"b") and len(other.changes()) == 6
    assert other.clean(0) == 3
    assert [c.id for c in bench.store.changes()] == [c.id for c in other.changes()]
    with (bench.store.folder / "changes.jsonl").open("ab") as file:
        file.write(encode_records([changed("torn", 1)])[:-5])
    assert len(bench.store.changes()) == 3
    bench.write("c", b"c")
    assert os.path.basename(bench.store.changes()[-1].file) == "c"
    (bench.store.folder / "changes.jsonl").unlink()
    assert bench.store.changes() == []
