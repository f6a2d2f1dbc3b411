"""`cru /undo`, `/redo` and `cru history` as users run them; kill -9 at each step of keeping and of taking back."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.kit import HomeDir, cru, kill_at, pty, start
from tests.kit.faults import SPACE, Disk, Fault, run_with
from tests.kit.run import program
from tests.kit.sandbox import needs_mounts

from cru.core.revisions.store import find_stores

SCRIPT = (
    'call: write {"file_path": "a", "content": "one\\n"}\n---\ntext: done\n---\n'
    'call: edit {"file_path": "a", "old_string": "one", "new_string": "two"}\n---\ntext: edited\n'
)
CONFIG = 'model = "scripted:script.txt"\nmode = "auto"\n'


@pytest.fixture
def desk(home: HomeDir) -> HomeDir:
    home.configure(CONFIG)
    (home.project / "script.txt").write_text(SCRIPT)
    (home.project / "a").write_text("zero\n")
    return home


def content(home: HomeDir) -> str:
    return (home.project / "a").read_text()


def test_a_turn_is_taken_back_in_another_run(desk: HomeDir) -> None:
    assert cru("go", home=desk).out == "done\n" and content(desk) == "one\n"
    assert cru("/undo", home=desk).out.startswith("1 turn is taken back: “go”\nfiles: a\n")
    assert content(desk) == "zero\n"
    again = cru("/undo", home=desk)
    assert (again.code, again.err.splitlines()[0]) == (1, "cru: default has no turn to take back")
    assert cru("/redo", home=desk).code == 0 and content(desk) == "one\n"


def test_a_file_of_somebody_else_is_refused_with_its_name_and_a_status(desk: HomeDir) -> None:
    cru("go", home=desk)
    (desk.project / "a").write_text("mine\n")
    done = cru("/undo", home=desk)
    assert done.code == 3 and "changed by someone else, so nothing was done: " in done.err and "--leave" in done.err
    assert content(desk) == "mine\n" and len(desk.log()) == 6
    assert cru("/undo --leave", home=desk).code == 0 and content(desk) == "mine\n"


def test_history_lists_shows_compares_and_restores(desk: HomeDir) -> None:
    assert "cru has changed no file of" in cru("history", home=desk).out
    cru("first", home=desk)
    cru("second", home=desk)
    listed = cru("history", "a", home=desk).out.splitlines()
    assert [line.split()[0] for line in listed] == ["1", "2"]
    assert "4 bytes" in listed[0] and "before edit in default" in listed[0] and "before write in default" in listed[1]
    assert cru("history", "a", "2", home=desk).out == "zero\n"
    assert cru("history", "a", "2", "--diff", home=desk).out.endswith("@@ -1 +1 @@\n-zero\n+two\n")
    restored = cru("history", "a", "2", "--restore", home=desk)
    assert restored.code == 0 and content(desk) == "zero\n"
    assert cru("history", "a", "1", home=desk).out == "two\n"
    assert "is as revision 3" in cru("history", "a", "3", "--restore", home=desk).out
    [entry] = json.loads(cru("history", "--json", home=desk).out)
    assert entry["file"] == str(desk.project / "a") and entry["changed"]["by"] == "restore"
    revisions = json.loads(cru("history", "a", "--json", home=desk).out)
    assert [(r["number"], r["size"], r["kept"]) for r in revisions] == [(1, 4, True), (2, 4, True), (3, 5, True)]


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("history", "nothing"), 1, "cru has not changed"),
        (("history", "a", "9"), 1, "has 1 revisions, not 9"),
        (("history", "a", "x"), 2, "a revision is a number from 1"),
        (("history", "a", "0"), 2, "a revision is a number from 1"),
        (("history", "a", "1", "2"), 2, "does not take 2"),
    ],
)
def test_words_that_do_not_fit_are_refused(desk: HomeDir, words: tuple[str, ...], code: int, text: str) -> None:
    cru("go", home=desk)
    done = cru(*words, home=desk)
    assert (done.code, text in done.err) == (code, True), done


def steps_of(home: HomeDir, before: Disk, prompt: str) -> list[int]:
    """The steps of a run that concern revisions, and one behind them."""
    changes = run_with(Fault(), prompt, home=home).changes
    steps = [n for n, change in enumerate(changes, 1) if change.path.startswith("revisions")]
    assert steps
    return [*steps, *range(steps[-1] + 1, len(changes) + 1)][:12]


@pytest.mark.slow
def test_killed_at_any_step_the_file_is_untouched_or_can_be_taken_back(desk: HomeDir) -> None:
    desk.cru.mkdir(exist_ok=True)
    before = Disk.read(desk.cru)
    for step in steps_of(desk, before, "go"):
        before.write(desk.cru)
        (desk.project / "a").write_text("zero\n")
        run_with(Fault(kill=step), "go", home=desk)
        if content(desk) != "zero\n":
            [store] = find_stores(desk.cru)
            [change] = store.changes()
            assert store.content(change.before) == b"zero\n"
        done = cru("/undo", home=desk)
        assert done.code == 0 and content(desk) == "zero\n", (step, done)


@pytest.mark.slow
def test_killed_at_any_step_what_commands_changed_is_taken_back_or_named(desk: HomeDir) -> None:
    calls = "".join(f'call: bash {{"command": "echo new >> {name}"}}\n---\n' for name in ("a", "b"))
    (desk.project / "script.txt").write_text(f"{calls}text: done\n")
    desk.configure(CONFIG.replace('"auto"', '"trust"') + 'sandbox.mode = "off"\n')
    subprocess.run(["git", "init", "-q"], cwd=desk.project, check=True)
    before = Disk.read(desk.cru)
    changes = run_with(Fault(), "go", home=desk).changes
    steps = [n for n, c in enumerate(changes, 1) if c.path.startswith("revisions") and "/git-" not in c.path]
    outcomes = set()
    for step in (*steps[:12], steps[-1] + 1):
        before.write(desk.cru)
        (desk.project / "a").write_text("zero\n")
        (desk.project / "b").unlink(missing_ok=True)
        run_with(Fault(kill=step), "go", home=desk)
        done = cru("/undo", home=desk)
        is_restored = (content(desk), (desk.project / "b").exists()) == ("zero\n", False)
        is_named = "commands ran that cannot be taken back: `echo new >> a`" in done.out
        assert done.code == 0 and (is_restored or is_named), (step, done)
        outcomes.add((is_restored, is_named))
    assert (False, True) in outcomes


@pytest.mark.slow
def test_killed_while_it_is_taken_back_it_can_be_taken_back_again(desk: HomeDir) -> None:
    cru("go", home=desk)
    before = Disk.read(desk.cru)
    steps = steps_of(desk, before, "/undo")
    assert len(steps) > 2
    for step in steps:
        before.write(desk.cru)
        (desk.project / "a").write_text("one\n")
        run_with(Fault(kill=step), "/undo", home=desk)
        assert content(desk) in ("one\n", "zero\n")
        done = cru("/undo", home=desk)
        assert content(desk) == "zero\n" and (done.code == 0 or "no turn to take back" in done.err), (step, done)
        assert cru("/redo", home=desk).code == 0 and content(desk) == "one\n"


@pytest.mark.slow
@pytest.mark.parametrize("command", ["/undo", "/redo"])
def test_a_half_undo_is_rolled_back_and_reported_at_the_next_start(desk: HomeDir, command: str) -> None:
    names = ["a", "b", "c"]
    calls = [f"call: write {json.dumps({'file_path': name, 'content': 'one'})}\n" for name in names]
    (desk.project / "script.txt").write_text(f"{''.join(calls)}---\ntext: done\n")

    def files() -> list[bool]:
        """Whether each has what the turn wrote."""
        return [(desk.project / name).exists() and (desk.project / name).read_text() == "one" for name in names]

    cru("go", home=desk)
    if command == "/redo":
        cru("/undo", home=desk)
    (desk.project / "script.txt").write_text("loop: yes\ntext: more\n")
    before, top = Disk.read(desk.path.parent), desk.path.parent
    run = run_with(Fault(), command, home=desk, root=top)
    outcomes = set()
    for step in [
        n for n, change in enumerate(run.changes, 1) if change.path.startswith("project") or "undo" in change.path
    ]:
        before.write(top)
        run_with(Fault(kill=step), command, home=desk, root=top)
        half = files()
        again = cru("go on", home=desk)
        assert again.code == 0 and len(set(files())) == 1, (step, again)
        is_reported = f"{command} was interrupted" in again.err
        assert is_reported or len(set(half)) == 1, (step, again)
        outcomes.add((files()[0] == (command == "/undo"), is_reported))
        assert f"{command} was interrupted" not in cru("go on", home=desk).err
    assert (True, True) in outcomes


def test_a_rollback_leaves_what_someone_changed_since_and_names_it(desk: HomeDir) -> None:
    cru("go", home=desk)
    run_with(Fault(kill=1, kinds=("write",), path="context.jsonl"), "/undo", home=desk)
    assert content(desk) == "zero\n"
    (desk.project / "a").write_text("mine\n")
    again = cru("go on", home=desk)
    assert "these are not: " in again.err and "a: changed by someone else since" in again.err
    assert content(desk) == "mine\n"


@pytest.mark.slow
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_on_a_disk_that_fails_the_tool_works_and_it_is_told_once(desk: HomeDir, number: int) -> None:
    kinds = SPACE if number == errno.ENOSPC else ()
    cru("go", home=desk)
    (desk.project / "a").write_text("one\n")
    run = run_with(Fault(fail=1, errno=number, lasting=True, kinds=kinds, path="changes.jsonl"), "more", home=desk)
    assert run.done.code == 0 and content(desk) == "two\n"
    assert run.done.err.count("may not be taken back by /undo") == 1 and os.strerror(number) in run.done.err
    shown = cru("/undo", home=desk).out
    assert "files were written of which no revision is kept: `a`" in shown and content(desk) == "two\n"


@pytest.mark.sample(1)
@needs_mounts
@pytest.mark.parametrize(("options", "why"), [("size=64k", "No space left on device"), ("ro", "Read-only file system")])
def test_where_nothing_can_be_kept_for_real_the_tool_works(desk: HomeDir, options: str, why: str) -> None:
    (desk.project / "a").write_bytes(os.urandom(100_000))
    place = desk.cru / "revisions"
    place.mkdir(parents=True)
    mount = f'mount -t tmpfs -o {options} none {place} && exec "$@"'
    argv = ("unshare", "-m", "sh", "-c", mount, "sh", str(program()), "go")
    done = subprocess.run(
        argv, cwd=desk.project, env=desk.env, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    assert (done.returncode, done.stdout, content(desk)) == (0, "done\n", "one\n"), done.stderr
    assert done.stderr.count("may not be taken back by /undo") == 1 and why in done.stderr
    assert "files were written of which no revision is kept: `a`" in cru("/undo", home=desk).out


def test_nothing_of_it_is_loaded_by_a_turn_that_changes_no_file(desk: HomeDir) -> None:
    (desk.project / "script.txt").write_text('call: read {"file_path": "a"}\n---\ntext: done\n')
    code = """
import os, sys
leave = os._exit
def tell(status):
    loaded = [n for n in sys.modules if n.startswith("cru.core.undo") or n == "cru.core.undo.turns"]
    os.write(2, str(loaded).encode())
    leave(status)
os._exit = tell
from cru.faces.cli.main import main
sys.argv = ["cru", "go"]
sys.exit(main())
"""
    run = run_with(Fault(), home=desk, code=code)
    assert run.done.err.endswith("[]") and run.done.code == 0, run.done
    assert not Path(desk.cru / "revisions").exists()


def test_in_the_chat_the_difference_is_shown_and_a_person_decides(desk: HomeDir) -> None:
    cru("go", home=desk)
    (desk.project / "a").write_text("mine\n")
    with pty(home=desk) as terminal:
        terminal.expect("> ")
        terminal.line("/undo")
        terminal.expect("no > ")
        assert all(text in terminal.text for text in ("undo: a", "| -one", "| +mine", "y overwrites that"))
        terminal.line("n")
        terminal.expect("nothing was done: ")
        assert content(desk) == "mine\n"
        terminal.line("/undo")
        terminal.expect("no > ")
        terminal.line("y")
        terminal.expect("/redo brings it again")
        terminal.line("/quit")
        assert terminal.wait() == 0
    assert content(desk) == "zero\n" and cru("history", "a", "1", home=desk).out == "mine\n"


def test_a_command_whose_run_was_killed_is_named(desk: HomeDir) -> None:
    subprocess.run(("git", "init", "-q"), cwd=desk.project, check=True)
    command = "echo half > a; touch begun; sleep 60"
    (desk.project / "script.txt").write_text(f"call: bash {json.dumps({'command': command})}\n")
    desk.configure(CONFIG.replace("auto", "trust"))
    with start("go", home=desk) as run:
        kill_at(run, (desk.project / "begun").exists)
    done = cru("/undo", home=desk)
    assert done.code == 0 and f"commands ran that cannot be taken back: `{command}`" in done.out
    assert content(desk) == "half\n"


@pytest.mark.slow
def test_every_step_of_keeping_may_fail_and_the_tool_works(desk: HomeDir) -> None:
    desk.cru.mkdir(exist_ok=True)
    before = Disk.read(desk.cru)
    for step in steps_of(desk, before, "go"):
        before.write(desk.cru)
        (desk.project / "a").write_text("zero\n")
        run = run_with(Fault(fail=step, errno=errno.ENOSPC), "go", home=desk)
        failed = next((change for change in run.changes if change.failed), None)
        if failed is not None and failed.path.startswith("revisions"):
            assert (run.done.code, content(desk)) == (0, "one\n"), run
            assert run.done.err.count("may not be taken back by /undo") <= 1
            cru("/undo", home=desk)
            assert content(desk) in ("zero\n", "one\n")


def test_two_runs_of_two_contexts_keep_in_one_place(desk: HomeDir) -> None:
    (desk.project / "script.txt").write_text(
        "".join(f'call: write {{"file_path": "f{n}", "content": "x"}}\n' for n in range(20)) + "---\ntext: done\n"
    )
    with start("-C", "one", "go", home=desk) as one, start("-C", "two", "go", home=desk) as two:
        assert one.wait().code == two.wait().code == 0
    [store] = find_stores(desk.cru)
    assert len(store.changes()) == 40
    assert {change.origin.context for change in store.changes()} == {"one", "two"}


def test_a_note_that_the_model_wrote_is_taken_back(desk: HomeDir) -> None:
    notes = desk.path / "notes"
    notes.mkdir()
    (notes / "Plan.md").write_text("# Old\n")
    args = json.dumps({"path": "Plan.md", "content": "# New\n", "overwrite": True})
    (desk.project / "script.txt").write_text(f"call: vault_write {args}\n---\ntext: done\n")
    desk.configure(f'model = "scripted:script.txt"\nmode = "trust"\n[vault]\npath = "{notes}"\n')
    assert cru("go", home=desk).out == "done\n" and (notes / "Plan.md").read_text() == "# New\n"
    shown = cru("/undo", home=desk)
    assert (notes / "Plan.md").read_text() == "# Old\n" and "no revision is kept" not in shown.out, shown


def test_scripts_take_back_files_too_and_are_refused_where_a_person_would_be_asked(desk: HomeDir) -> None:
    cru("go", home=desk)
    code = "local n, why = cru.sessions.undo() return tostring(n) .. ' ' .. tostring(why) .. ' ' .. #cru.sessions.undo_history()"
    (desk.project / "a").write_text("mine\n")
    refused = cru("lua", code, home=desk)
    assert refused.out.startswith('"nil changed by someone else, so nothing was done: '), refused
    (desk.project / "a").write_text("one\n")
    assert cru("lua", code, home=desk).out == '"1 nil 1"\n'
    assert content(desk) == "zero\n"
