"""What `cru batch` tells of its items: calls that came to nothing, tokens, costs."""

from __future__ import annotations

import msgspec
import pytest
from tests.faces.batches import results, scripted, write_items
from tests.kit import Call, Hang, HomeDir, Reply, cru, server, start

REFUSED = 'by: order\nloop: yes\ncall: bash {"command": "touch ran"}\ncall: nosuch {}\n---\ntext: the end\n'


@pytest.mark.slow
def test_calls_that_were_refused_are_told_counted_and_kept(home: HomeDir) -> None:
    scripted(home, REFUSED)
    write_items(home, {"prompt": "one", "id": "a"})
    run = cru("batch", "p.jsonl", "--name", "n", "--out", "r.jsonl", home=home)
    plain = cru("-C", "plain", "one", home=home)
    told = [line.removeprefix("[").removesuffix("]") for line in plain.err.splitlines() if line.startswith("[tool ")]
    assert run.code == plain.code == 0 and len(told) == 2, plain.err
    result = results(home)["a"]
    assert (result["status"], result["notices"], result["refused"]) == ("done", told, 2)
    [line] = [line for line in run.err.splitlines() if "nosuch" in line]
    assert line.startswith("cru: a: 2 calls refused; tool bash policy: ") and "there is no tool `nosuch`" in line
    assert "[2 calls refused] the end" in run.out and "1 done; 2 calls refused; " in run.out, run.out
    lines = cru("batch", "p.jsonl", "--name", "m", "--json", home=home).out.splitlines()
    assert msgspec.json.decode(lines[-1])["payload"]["refused"] == 2


def test_calls_of_sub_agents_that_were_refused_are_told_too(home: HomeDir) -> None:
    (home.project / "below.txt").write_text(REFUSED)
    below = f'{{"agent": "general", "prompt": "go", "model": "scripted:{home.project}/below.txt"}}'
    scripted(home, f"call: task {below}\n---\ntext: the end\n")
    write_items(home, {"prompt": "one", "id": "a", "set": {"permissions.allow": ["task"]}})
    run = cru("batch", "p.jsonl", "--name", "n", "--out", "r.jsonl", home=home)
    [bash, unknown] = results(home)["a"]["notices"]
    assert bash.startswith("general ") and ": tool bash policy: " in bash and "nosuch" in unknown, run.err


@pytest.mark.slow
def test_tokens_are_those_of_the_result_of_json_and_an_unknown_price_is_not_0(home: HomeDir) -> None:
    scripted(home, "loop: yes\ntext: fine\n")  # counts nothing
    write_items(home, {"prompt": "one", "id": "a"}, {"prompt": "one", "id": "b"})
    run = cru("batch", "p.jsonl", "--name", "n", "--out", "r.jsonl", home=home)
    last = msgspec.json.decode(cru("-C", "n-c", "--json", "one", home=home).out.splitlines()[-1])
    usage, tokens = last["payload"]["usage"], results(home)["a"]["tokens"]
    assert (usage["cost"], usage["unpriced"], usage["estimated"]) == (None, 1, 1) and tokens == usage
    total = f"{2 * (usage['input'] + usage['output']):,}"
    assert f"2 done; about {total} tokens, cost not known; " in run.out, run.out
    payload = msgspec.json.decode(cru("batch", "p.jsonl", "--name", "n", "--json", home=home).out.splitlines()[-1])[
        "payload"
    ]
    assert (payload["cost"], payload["unpriced"], payload["estimated"]) == (None, 2, 2)
    write_items(home, {"prompt": "one", "id": "a"}, {"prompt": "two", "id": "c"})
    assert "if they cost what" not in cru("batch", "p.jsonl", "--name", "n", "--dry-run", home=home).out


@pytest.mark.slow
def test_a_limit_of_an_unknown_price_is_told(home: HomeDir) -> None:
    scripted(home, "call: ls {}\n---\ntext: fine\n")
    write_items(home, {"prompt": "one", "id": "a", "max_cost": 0.1})
    run = cru("batch", "p.jsonl", "--name", "n", "--out", "r.jsonl", home=home)
    assert any("budget" in notice and "not known" in notice for notice in results(home)["a"]["notices"]), run.err
    assert "cru: a: " in run.err and "not known" in run.err


@pytest.mark.slow
def test_the_tokens_of_runs_that_were_ended_count_too(home: HomeDir) -> None:
    """The first run is handed back after a reply that the server did not count."""
    import signal

    with server([Reply(calls=[Call("ls", {})]), Hang(), Reply("answer")]) as model:
        home.configure(url=model.url)
        write_items(home, {"prompt": "one", "id": "a"})
        command = ("batch", "p.jsonl", "--name", "n", "--out", "r.jsonl")
        with start(*command, home=home) as run:
            model.wait(2)
            run.signal(signal.SIGINT)
            run.wait_for("nothing more is begun")
            run.signal(signal.SIGINT)
            assert run.wait().code == 130
        assert cru(*command, home=home).code == 0
    tokens = results(home)["a"]["tokens"]
    assert tokens["requests"] >= 2 and tokens["input"] > 0 and tokens["cost"] is None, tokens


@pytest.mark.slow
def test_counts_stand_in_one_order_and_the_way_on_works_from_anywhere(home: HomeDir) -> None:
    (home.project / "fail.txt").write_text("error: 400 no\n---\ntext: now\n")
    scripted(home)
    write_items(home, {"prompt": "one", "id": "a", "model": "scripted:fail.txt"}, {"prompt": "two", "id": "b"})
    run = cru("batch", "p.jsonl", "--name", "n", "--parallel", "1", "--out", "r.jsonl", home=home)
    assert "\n1 done, 1 failed; " in run.out and "1 item not done; once more: " in run.err, run
    resume = results(home)["a"]["resume"]
    assert resume.startswith(f"cd {home.project} && cru ") and resume.endswith(" -C n-a --resume"), resume
    assert cru("batch", home=home).out == "n: 1 done, 1 failed\n"


def test_a_dry_run_names_a_missing_key_and_not_the_price(home: HomeDir) -> None:
    write_items(home, {"prompt": "one", "id": "a", "model": "openai:gpt-5-mini"})
    run = cru("batch", "p.jsonl", "--name", "n", "--dry-run", home=home)
    assert run.code == 0 and "openai:gpt-5-mini cannot be asked as things are: openai needs a key" in run.out, run
    assert "1 item, 0 finished" in run.out and "is not known" not in run.out
