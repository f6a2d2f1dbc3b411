"""All of a batch is looked at before anything runs, and what concerns all of it is told once."""

from __future__ import annotations

import msgspec
import pytest
from tests.faces.batches import results, scripted, states, write_items
from tests.kit import HomeDir, cru

from cru.faces.cli.fleet import batch_face
from cru.faces.cli.fleet.batch_face import BatchFace
from cru.features.fleet import FleetError
from cru.features.fleet.records import TaskRow, TaskState, WorkResult, WorkStatus

BROKEN_CARD = "---\nname: bad\ntools: [\n---\nx\n"


def test_all_errors_of_all_lines_are_named_before_anything_runs(home: HomeDir) -> None:
    scripted(home)
    (home.project / "p.jsonl").write_text(
        '{"id": "a", "prompt": "x"}\n{"id": "a", "prompt": ""}\n{"promt": "z", "fule": 3, "seconds": "x"}\n'
        '{"id": "b b", "prompt": "z", "mode": "autoo", "set": {"fule": 3}, "agent": "nope", "max_cost": -1}\n'
        '{"prompt": "k", "cwd": "nodir"}\n{"prompt": "k", "attach": ["nofile"]}\nnot json\n'
    )
    run = cru("batch", "p.jsonl", "--name", "n", home=home)
    assert run.code == 2 and states(home) == {} and "nothing is run" in run.err
    expected = [
        "p.jsonl:2: the prompt is empty", "p.jsonl:2: the id a is that of line 1, too",
        "p.jsonl:3: there is no field `promt` (did you mean `prompt`?)", "p.jsonl:3: there is no field `fule` (did you mean `fuel`?)",
        "p.jsonl:3: Expected `float`", "p.jsonl:4: `id` has letters", "p.jsonl:4: unknown mode `autoo`", "p.jsonl:4: `seconds`, `fuel` and",
        "p.jsonl:5: `cwd`: there is no folder", "p.jsonl:6: `attach`: cannot attach", "p.jsonl:7: not JSON",
    ]  # fmt: skip
    assert [text for text in expected if text not in run.err] == [], run.err
    write_items(home, {"prompt": "k", "agent": "nope", "set": {"fule": 3}, "attach": ["nofile"]})
    run = cru("batch", "p.jsonl", "--name", "n", "--agent", "general", home=home)
    for text in (
        "p.jsonl:1: `set`: unknown setting `fule`",
        "p.jsonl:1: `agent`: there is no agent 'nope'",
        "`attach`",
    ):
        assert text in run.err, run.err
    assert run.code == 2 and not (home.cru / "contexts" / "n-a").exists()


@pytest.mark.parametrize("out", ["p.jsonl", "./p.jsonl", "link.jsonl"])
def test_results_do_not_replace_the_items(home: HomeDir, out: str) -> None:
    scripted(home)
    path = write_items(home, {"prompt": "k", "id": "a"})
    (home.project / "link.jsonl").symlink_to(path)
    before = path.read_bytes()
    run = cru("batch", "p.jsonl", "--name", "n", "--out", out, home=home)
    assert (run.code, path.read_bytes()) == (2, before) and f"--out {out} is the file of the items" in run.err
    assert states(home) == {}


def test_what_is_finished_may_lose_its_files(home: HomeDir) -> None:
    scripted(home)
    (home.project / "notes.txt").write_text("notes")
    write_items(home, {"prompt": "k", "id": "a", "attach": ["notes.txt"]})
    assert cru("batch", "p.jsonl", "--name", "n", home=home).code == 0
    (home.project / "notes.txt").unlink()
    assert cru("batch", "p.jsonl", "--name", "n", home=home).code == 0


def test_results_that_cannot_be_written_are_told_before_anything_runs(home: HomeDir) -> None:
    scripted(home)
    write_items(home, {"prompt": "k", "id": "a"})
    for out in ("/nodir/x", str(home.project)):
        run = cru("batch", "p.jsonl", "--name", "n", "--out", out, home=home)
        assert run.code == 1 and f"--out {out}: " in run.err and "nothing is run" in run.err, run.err
    assert states(home) == {}


@pytest.mark.slow
def test_a_broken_card_is_told_once_and_not_of_each_item(home: HomeDir) -> None:
    scripted(home)
    (home.cru / "agents").mkdir()
    (home.cru / "agents" / "bad.md").write_text(BROKEN_CARD)
    write_items(home, {"prompt": "one", "id": "a"}, {"prompt": "two", "id": "b"})
    run = cru("batch", "p.jsonl", "--name", "n", "--out", "r.jsonl", home=home)
    assert (run.code, run.err.count("the agent bad cannot be used")) == (0, 1), run.err
    assert not any(result.get("notices") for result in results(home).values())
    lines = cru("batch", "p.jsonl", "--name", "m", "--json", home=home).out.splitlines()
    payloads = [msgspec.json.decode(line)["payload"] for line in lines]
    assert "the agent bad" in payloads[0]["notices"][0] and not any(p.get("notices") for p in payloads[1:])


@pytest.mark.parametrize(
    ("notices", "told"),
    [
        ([("a",), ("a",), ("a", "b")], [("a",), (), ("b",)]),
        ([("a", "a"), ("b",)], [("a",), ("b",)]),
        ([("of all", "a"), ("of all",)], [("a",), ()]),
    ],
)
def test_a_notice_stands_once_in_a_run(notices: list[tuple[str, ...]], told: list[tuple[str, ...]]) -> None:
    face = BatchFace("n", set(), True, None)
    face.begin([], ["of all"])
    assert [_notices_after(face, each, 0) for each in notices] == told
    assert _notices_after(face, ("a",), 1) == ("a",)  # it may say why a call was refused


def _notices_after(face: BatchFace, notices: tuple[str, ...], refused: int) -> tuple[str, ...]:
    row = face._without_common(
        TaskRow(
            "a", 1, TaskState.FINISHED, "p", "c", "w", 0, WorkResult(WorkStatus.DONE, notices=notices, refused=refused)
        )
    )
    assert row.result is not None
    return row.result.notices


def test_a_reader_that_goes_is_no_success_and_no_fault_of_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(text: str) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(batch_face, "show", gone)
    with pytest.raises(FleetError, match="the reader of standard output has gone"):
        BatchFace("n", set(), True, None).begin([], [])
