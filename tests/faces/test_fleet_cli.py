"""`cru fleet`, `cru run-item` and `cru batch --shard` as people run them."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path
from zlib import crc32

import msgspec
import pytest
from tests.faces.batches import begun, prompts, results, scripted, write_items
from tests.kit import Hang, HomeDir, Reply, cru, pty, server, start
from tests.kit.run import program

ITEM = msgspec.json.encode({"prompt": "one", "id": "a"}).decode()


def test_the_fleet_is_shown_cancelled_and_asked_again(home: HomeDir, fleet: dict[str, str]) -> None:
    scripted(home)
    write_items(home, {"prompt": "one", "id": "a"}, {"prompt": "two", "id": "b"})
    assert cru("batch", "p.jsonl", "--name", "n", "--queue", home=home, env=fleet).code == 0
    assert cru("fleet", home=home, env=fleet).out == "n: 2 queued\n\nno workers; cru worker\n"
    assert cru("fleet", "cancel", "n", "a", home=home, env=fleet).out == "n: 1 item cancelled\n"
    assert cru("fleet", "status", home=home, env=fleet).out.startswith("n: 1 queued, 1 cancelled\n")
    assert cru("worker", "--once", home=home, env=fleet).code == 0
    assert cru("fleet", "retry", "n", home=home, env=fleet).out == "n: 1 item queued again\n"
    assert cru("worker", "--once", home=home, env=fleet).code == 0
    assert cru("fleet", home=home, env=fleet).out.startswith("n: 2 done\n")
    assert prompts(home, "n-a") == ["one"] and prompts(home, "n-b") == ["two"]


@pytest.mark.slow
def test_an_item_that_runs_is_cancelled_by_its_worker(home: HomeDir, fleet: dict[str, str]) -> None:
    with server([Hang(), Reply("answer")]) as model:
        home.configure(url=model.url)
        write_items(home, {"prompt": "one", "id": "a"})
        cru("batch", "p.jsonl", "--name", "n", "--queue", home=home, env=fleet)
        with start("worker", "--beat", "0.5", home=home, env=fleet) as worker:
            begun(home, worker, model.requests)
            shown = cru("fleet", home=home, env=fleet).out
            assert re.search(r"n: 1 running\n\n\S+: 1 of 1 running\n", shown), shown
            assert cru("fleet", "cancel", "n", home=home, env=fleet).out == "n: 1 item cancelled\n"
            worker.wait_for("n/a cancelled after")
            worker.signal(signal.SIGTERM)
            assert worker.wait().code == 0
        watched = cru("batch", "p.jsonl", "--name", "n", "--out", "r.jsonl", home=home, env=fleet)
        assert watched.code == 1 and results(home)["a"]["error"] == "it was cancelled"
        assert cru("-C", "n-a", "--resume", home=home).out == "answer\n"


def test_the_top_is_drawn_again_until_ctrl_c(home: HomeDir, fleet: dict[str, str]) -> None:
    with pty("fleet", "top", home=home, env=fleet) as terminal:
        for _ in range(2):
            terminal.expect("no workers; cru worker")
        terminal.send("\x03")
        assert terminal.wait() == 130


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (("cancel",), 2, "does not take `cancel`"),
        (("status", "n"), 2, "does not take `status n`"),
        (("cancle", "n"), 2, "cancel"),
        (("cancel", "n"), 1, "nothing is known of a batch n"),
        (("retry", "n", "--max-deaths", "0"), 2, "--max-deaths needs 1 or more"),
    ],
)
def test_what_the_fleet_does_not_know_is_named(
    home: HomeDir, fleet: dict[str, str], words: tuple[str, ...], code: int, error: str
) -> None:
    run = cru("fleet", *words, home=home, env=fleet)
    assert (run.code, error in run.err) == (code, True), run.err


def test_without_a_database_there_is_no_fleet(home: HomeDir) -> None:
    run = cru("fleet", home=home)
    assert run.code == 1 and "cru fleet needs a database, which CRU_DATABASE_URL names" in run.err


@pytest.mark.slow
def test_a_limit_holds_for_all_workers_together(home: HomeDir, fleet: dict[str, str]) -> None:
    with server([Reply("one", delay=1), Reply("two", delay=1), Reply("three", delay=1)]) as model:
        home.configure(url=model.url)
        write_items(home, *({"prompt": str(n), "id": f"i{n}"} for n in range(3)))
        cru("batch", "p.jsonl", "--name", "n", "--queue", home=home, env=fleet)
        shown = cru("fleet", "limit", "default", "--running", "1", home=home, env=fleet).out
        assert "limit of default: 0 of 1 running\n" in shown
        with start("worker", "--once", "--parallel", "2", home=home, env=fleet) as a:
            b = cru("worker", "--once", "--parallel", "2", home=home, env=fleet)
            done = a.wait()
        assert (done.code, b.code) == (0, 0)
        assert "the limit of default is reached: its items wait" in done.err + b.err
        assert len(model.requests) == 3
    assert cru("fleet", home=home, env=fleet).out.startswith("n: 3 done\n")


# one item -------------------------------------------------------------------------------------------------------------------------------


def test_an_item_is_run_once_whoever_asks_again(home: HomeDir) -> None:
    with server([Reply("answer")]) as model:
        home.configure(url=model.url)
        first, again = (cru("run-item", home=home, input=ITEM) for _ in range(2))
        assert len(model.requests) == 1
    assert (first.code, again.code) == (0, 0), first.err
    lines = [msgspec.json.decode(run.out) for run in (first, again)]
    assert [(line["id"], line["status"], line["response"]) for line in lines] == [("a", "done", "answer")] * 2
    assert prompts(home, "run-item-a") == ["one"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "there is no item on standard input"),
        ('{"promt": "x"}', "there is no field `promt`"),
        ('{"prompt": "x"}\n{"prompt": "y"}', "standard input:1"),
        ('{"prompt": "x", "cwd": "/nowhere"}', "there is no folder /nowhere"),
    ],
)
def test_what_is_no_item_is_named_and_nothing_runs(home: HomeDir, text: str, error: str) -> None:
    run = cru("run-item", home=home, input=text)
    assert (run.code, error in run.err, run.out) == (2, True, ""), run.err


def test_an_item_that_fails_prints_its_result_and_status_1(home: HomeDir) -> None:
    scripted(home, "error: 400 not today\n")
    run = cru("run-item", home=home, input=ITEM)
    line = msgspec.json.decode(run.out)
    assert (run.code, line["status"]) == (1, "failed") and "not today" in line["error"]


@pytest.mark.slow
def test_sigterm_ends_an_item_that_goes_on_with_the_same_command(home: HomeDir) -> None:
    with server([Hang(), Reply("answer")]) as model:
        home.configure(url=model.url)
        with start("run-item", home=home, stdin=True) as run:
            run.write(ITEM)
            run.end_input()
            begun(home, run, model.requests)
            run.signal(signal.SIGTERM)
            done = run.wait()
        assert (done.code, done.out) == (143, "")
        again = cru("run-item", home=home, input=ITEM)
    assert again.code == 0 and msgspec.json.decode(again.out)["response"] == "answer"
    assert prompts(home, "run-item-a") == ["one"]


# parts ----------------------------------------------------------------------------------------------------------------------------------


def test_the_parts_of_a_batch_are_all_of_it_and_share_nothing(home: HomeDir) -> None:
    scripted(home)
    write_items(home, *({"prompt": str(n), "id": f"i{n}", "context": f"c{n % 3}"} for n in range(6)))
    seen: list[dict[str, str]] = []
    for part in (1, 2):
        run = cru("batch", "p.jsonl", "--name", "n", "--shard", f"{part}/2", "--out", f"{part}.jsonl", home=home)
        assert run.code == 0, run.err
        seen.append({key: r["context"] for key, r in results(home, f"{part}.jsonl").items()})
    assert sorted([*seen[0], *seen[1]]) == [f"i{n}" for n in range(6)]
    assert not {*seen[0].values()} & {*seen[1].values()}
    whole = cru("batch", "p.jsonl", "--name", "n", home=home)
    assert whole.code == 0 and sorted(prompts(home, "c0")) == [
        "0",
        "3",
    ]  # the keys are the same: nothing is asked again


def test_a_part_is_named_by_the_batch_and_its_number(home: HomeDir) -> None:
    """Under the name of its journal its prompts would have other keys, and be paid again."""
    scripted(home)
    write_items(home, {"prompt": "one", "id": "a", "context": "c"})
    [part] = [part for part in ("1/2", "2/2") if crc32(b"c") % 2 == int(part[0]) - 1]
    words = ("batch", "p.jsonl", "--name", "n", "--shard", part)
    assert cru(*words, home=home).code == 0
    wrong = cru("batch", "--name", f"n.{part.replace('/', '-of-')}", "--retry", home=home)
    assert wrong.code == 2 and f"--name n --shard {part}" in wrong.err
    forgotten = cru(*words, "--forget", home=home)
    assert (forgotten.code, forgotten.out) == (0, "n: 1 item forgotten\n"), forgotten.err


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/0", "-1/2", "١/٢"])
def test_a_part_that_is_none_is_refused(home: HomeDir, text: str) -> None:
    write_items(home, {"prompt": "one", "id": "a"})
    run = cru("batch", "p.jsonl", f"--shard={text}", home=home)
    assert run.code == 2 and "--shard needs a part and a number of parts" in run.err


RECIPES = {
    "Kubernetes": {"JOB_COMPLETION_INDEX": "1"},
    "Slurm": {"SLURM_ARRAY_TASK_ID": "1", "SLURM_ARRAY_TASK_COUNT": "2"},
}


@pytest.mark.parametrize("name", RECIPES)
def test_the_recipes_of_the_documentation_run_their_part(home: HomeDir, name: str) -> None:
    """The command of each recipe, with the variables that such a cluster sets, and two parts in all."""
    text = (Path(__file__).parents[2] / "docs" / "batch.md").read_text()
    recipe = text[text.index(f"### {name}") :]
    command = next(line.strip() for line in recipe.splitlines() if "cru batch" in line)
    command = command.removeprefix("command: [sh, -c, '").removesuffix("']")
    scripted(home)
    write_items(home, *({"prompt": str(n), "id": f"i{n}"} for n in range(6)))
    shell = command.replace("/8", "/2").replace("/data/", f"{home.project}/").replace("prompts.jsonl", "p.jsonl")
    path = f"{program().parent}:/usr/bin:/bin"
    done = subprocess.run(
        ["sh", "-c", shell],
        env={**home.env, **RECIPES[name], "PATH": path},
        cwd=home.project,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    [out] = home.project.glob("out-*.jsonl")
    assert 0 < len(out.read_bytes().splitlines()) < 6
