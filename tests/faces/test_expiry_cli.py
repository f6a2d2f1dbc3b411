"""Contexts that destroy themselves: `--destroy-at`, `--destroy-after-inactive`."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.kit import Hang, HomeDir, Received, Reply, Step, cru, server, start

DUE, LATER = "4000000000", "2100-01-31T12:00:00Z"


def aged(folder: Path, days: float) -> None:
    """As if it had not been used for that long."""
    then = time.time() - days * 86400
    for file in folder.iterdir():
        os.utime(file, (then, then))


def marked(home: HomeDir, name: str, *words: str) -> Path:
    """A context with these flags; the time DUE has come meanwhile."""
    assert cru("-C", name, *words, home=home).code == 0
    path = home.context(name) / "context_meta.json"
    path.write_text(path.read_text().replace(DUE, "1000000000"))
    return home.context(name)


def meta(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode((folder / "context_meta.json").read_bytes())
    return found


def test_at_its_time_a_context_goes_and_that_is_said_once(home: HomeDir) -> None:
    marked(home, "plain", "-y", "x")
    stays, gone = marked(home, "stays", "--destroy-at", LATER), marked(home, "gone", "--destroy-at", DUE)
    run = cru("-L", home=home, env={"TZ": "UTC"})
    assert run.out == "* default\n  plain\n  stays\n" or run.out == "  plain\n  stays\n"
    assert run.err == "cru: the context gone has destroyed itself, as it was to: on 2001-09-09 01:46:40\n"
    assert not gone.exists() and stays.exists()
    assert cru("-L", home=home).err == ""


def test_after_a_time_without_use_a_context_goes(home: HomeDir) -> None:
    used, unused = (marked(home, name, "--destroy-after-inactive", "30d") for name in ("used", "unused"))
    assert cru("-L", home=home).err == ""
    aged(used, 29)
    aged(unused, 31)
    run = cru("-L", home=home)
    assert run.err == "cru: the context unused has destroyed itself, as it was to: after 30d without use\n"
    assert used.exists() and not unused.exists()


def test_what_is_said_or_sent_to_a_context_is_use_of_it(home: HomeDir) -> None:
    with server([Reply("ok")]) as model:
        home.configure(url=model.url)
        spoken, sent = (marked(home, name, "--destroy-after-inactive", "1h") for name in ("spoken", "sent"))
        aged(spoken, 1)
        assert cru("-C", "spoken", "hi", home=home).out == "ok\n"
    aged(sent, 1)
    (sent / "inbox.jsonl").write_text('{"id":"1","timestamp":1,"from":"a","to":"sent","content":"x"}\n')
    assert cru("-L", home=home).err == "" and spoken.exists() and sent.exists()


@pytest.mark.parametrize(
    "words", [("-C", "due"), ("-l", "-C", "due"), ("-G", "due", "0"), ("-R", "due", "other"), ("-c", "due")]
)
def test_the_context_that_a_run_has_to_do_with_stays(home: HomeDir, words: tuple[str, ...]) -> None:
    marked(home, "due", "--destroy-at", DUE)
    assert "destroyed itself" not in cru(*words, "-x", home=home).err
    assert home.context("due").exists() or home.context("other").exists()


def test_a_renamed_context_keeps_its_mark(home: HomeDir) -> None:
    marked(home, "due", "--destroy-at", DUE)
    assert cru("-R", "due", "other", home=home).code == 0
    run = cru("-L", home=home)
    assert "the context other has destroyed itself" in run.err and not home.context("other").exists()


def test_a_context_that_somebody_works_on_stays(home: HomeDir) -> None:
    def hang(request: Received) -> Step:
        return Hang("so far")

    marked(home, "busy", "--destroy-at", DUE)
    with server(hang) as model:
        home.configure(url=model.url)
        with start("-C", "busy", "hi", home=home) as run:
            run.wait_for("so far")
            seen = cru("-L", home=home)
            assert "busy [active]" in seen.out and seen.err == ""
            run.interrupt()
            run.wait()
    assert "the context busy has destroyed itself" in cru("-L", home=home).err


def test_the_mark_survives_later_runs_and_can_be_taken_back(home: HomeDir) -> None:
    with server([Reply("one"), Reply("two")]) as model:
        home.configure(url=model.url)
        folder = marked(home, "a", "--destroy-at", LATER, "--destroy-after-inactive", "12h", "hi")
        assert cru("-C", "a", "hi", home=home).code == 0
    assert meta(folder)["destroy_at"] == 4105080000 and meta(folder)["destroy_after_seconds_inactive"] == 43200
    shown = cru("-C", "a", "-l", home=home, env={"TZ": "UTC"}).out
    assert "Destroys itself: on 2100-01-31 12:00:00, or after 12h without use" in shown
    marked(home, "a", "--destroy-at", "never", "--destroy-after-inactive", "never")
    assert "Destroys" not in cru("-C", "a", "-l", home=home).out
    assert "destroy_at" not in meta(folder) and meta(folder)["session_id"]
    assert "expiring" not in msgspec.json.decode((home.cru / "session.json").read_bytes())


def test_the_current_context_may_go_and_the_previous_one_follows(home: HomeDir) -> None:
    for name in ("first", "second"):
        assert cru("-c", name, home=home).code == 0
    marked(home, "second", "--destroy-at", DUE)
    assert cru("-C", "first", "-L", home=home).err.startswith("cru: the context second has")
    assert "* first" in cru("-L", home=home).out


def test_in_a_home_of_chibi_its_own_marks_count(home: HomeDir) -> None:
    one = {"created_at": 1, "last_activity_at": 1, "destroy_after_seconds_inactive": 0, "destroy_at": 0}
    listed = [{"name": "keep", **one}, {"name": "due", **one, "destroy_at": 5}]
    home.cru.mkdir()
    (home.cru / "state.json").write_bytes(msgspec.json.encode({"contexts": listed}))
    for name in ("keep", "due"):
        home.context(name).mkdir(parents=True)
    assert "the context due has destroyed itself" in cru("-L", home=home).err
    assert cru("-C", "keep", "--destroy-after-inactive", "90", home=home).code == 0
    state = msgspec.json.decode((home.cru / "state.json").read_bytes())
    key = meta(home.context("keep"))["session_id"]
    assert state["contexts"] == [{"name": "keep", **one, "destroy_after_seconds_inactive": 90, "session_id": key}]


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--destroy-at", "tomorrow"), ("--destroy-at", ""), ("--destroy-at", "-5"), ("--destroy-at", "9" * 30),
        ("--destroy-at", "2030-13-01"), ("--destroy-after-inactive", "soon"),
        ("--destroy-after-inactive", "-1"), ("--destroy-after-inactive", "1y"), ("--destroy-after-inactive", "9" * 40),
    ],
)  # fmt: skip
def test_a_time_that_is_none_is_refused(home: HomeDir, flag: str, value: str) -> None:
    run = cru(flag, value, home=home)
    assert run.code == 2 and run.err.startswith(f"cru: {flag}") and "never takes it back" in run.err
    assert cru("-l", home=home).err == "" and "Destroys" not in cru("-l", home=home).out


@pytest.mark.parametrize("value", ["1000000000", "2001-09-09T01:46:40Z", "2001-09-09", "1", "1960-01-01"])
def test_a_time_that_is_past_is_refused_as_it_was_understood(home: HomeDir, value: str) -> None:
    run = cru("-C", "keep", "--destroy-at", value, home=home, env={"TZ": "UTC"})
    assert run.code == 2 and "never takes it back" in run.err
    assert (
        f"--destroy-at: {'19' if len(value) == 1 or value[1] == '9' else '2001-09-09'}" in run.err
        and "is past" in run.err
    )
    assert cru("-L", home=home).err == ""


@pytest.mark.parametrize(
    "text", ['{"destroy_at": "soon"}', "broken", "[]", '{"destroy_at": -5}', '{"destroy_at": true}']
)
def test_a_mark_that_cannot_be_read_destroys_nothing(home: HomeDir, text: str) -> None:
    folder = marked(home, "a", "--destroy-at", DUE)
    (folder / "context_meta.json").write_text(text)
    run = cru("-L", home=home)
    assert run.code == 0 and "destroyed" not in run.err and folder.exists()


def test_a_start_reads_no_context_unless_one_is_marked(home: HomeDir) -> None:
    folder = marked(home, "a", "-y", "x")
    (folder / "context_meta.json").unlink()
    os.mkfifo(folder / "context_meta.json")  # whoever reads it waits for ever, or complains
    assert cru("-L", home=home).err == ""
