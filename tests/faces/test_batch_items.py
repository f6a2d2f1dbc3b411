"""What a batch of `cru batch` may say: items, settings, limits, costs; and what is suggested to go on."""

from __future__ import annotations

import pytest
from tests.faces.batches import results, scripted, states, write_items
from tests.kit import HomeDir, cru


@pytest.mark.slow
def test_an_item_can_be_an_agent_of_a_card(home: HomeDir) -> None:
    scripted(home, 'call: bash {"command": "touch ran"}\n---\ntext: the end\n')
    (home.cru / "agents").mkdir()
    card = "---\ndescription: reads\ntools: read, grep\nfuel: 7\ntemperature: 0.5\n---\nYou only read, says the card.\n"
    (home.cru / "agents" / "reader.md").write_text(card)
    write_items(home, {"prompt": "one", "id": "a", "mode": "trust"})
    run = cru("batch", "p.jsonl", "--name", "n", "-t", "--agent", "reader", "--out", "r.jsonl", home=home)
    assert (run.code, results(home)["a"]["status"]) == (0, "done"), run.err
    [result] = [entry for entry in home.log("n-a") if entry.get("entry_type") == "tool_result"]
    assert result["metadata"]["is_error"] and not (home.project / "ran").exists()
    shown = cru("-C", "n-a", "trace", "--request", "1", home=home).out
    assert "You only read, says the card." in shown and '"name":"bash"' not in shown.replace(" ", "")


def test_a_card_says_which_model_the_main_agent_asks_unless_the_command_line_does(home: HomeDir) -> None:
    for name in ("own", "alias", "line"):
        (home.path / f"{name}.txt").write_text(f"loop: yes\ntext: {name}\n")
    config = (
        f'model = "scripted:{home.path}/own.txt"\n[agents.model_aliases]\nopus = "scripted:{home.path}/alias.txt"\n'
    )
    home.configure(config)
    (home.cru / "agents").mkdir()
    for model in ("opus", "sonnet"):
        card = f"---\ndescription: d\nmodel: {model}\n---\nYou are one.\n"
        (home.cru / "agents" / f"{model}er.md").write_text(card)
    assert cru("--agent", "opuser", "hi", home=home).out == "alias\n"
    assert cru("--agent", "sonneter", "hi", home=home).out == "own\n"
    assert cru("--agent", "opuser", "--model", f"scripted:{home.path}/line.txt", "hi", home=home).out == "line\n"


@pytest.mark.slow
def test_an_item_has_lists_in_its_settings_and_limits_of_its_own(home: HomeDir) -> None:
    look = 'call: bash {"command": "touch ran"}\nusage: input=10 output=2 cost=0.5\n---\ntext: the end\n'
    scripted(home, look)
    write_items(
        home,
        {"prompt": "one", "id": "a", "set": {"permissions.deny": ["bash:touch *"]}},
        {"prompt": "two", "id": "b", "max_cost": 0.1},
    )
    run = cru("batch", "p.jsonl", "--name", "n", "-t", "-s", "username=someone", "--out", "r.jsonl", home=home)
    found = results(home)
    assert run.code == 1 and (found["a"]["status"], found["b"]["status"]) == ("done", "denied"), run
    assert "$0.50 of $0.10" in found["b"]["error"]
    [result] = [entry for entry in home.log("n-a") if entry.get("entry_type") == "tool_result"]
    assert "the rule `bash:touch *`" in result["content"]
    assert [entry["from"] for entry in home.log("n-a") if entry.get("role") == "user"] == ["someone"]


def test_settings_and_modes_that_nobody_knows_are_named_with_their_line(home: HomeDir) -> None:
    scripted(home)
    write_items(
        home,
        {"prompt": "one", "id": "a", "set": {"fule": 3}},
        {"prompt": "two", "id": "b", "mode": "trustt"},
        {"prompt": "three", "id": "c", "set": {"fuel": "much"}},
    )
    run = cru("batch", "p.jsonl", "--name", "n", home=home)
    assert run.code == 2 and "p.jsonl:1: `set`: unknown setting `fule` (did you mean `fuel`?)" in run.err, run.err
    assert "p.jsonl:2: unknown mode `trustt` (did you mean `trust`?)" in run.err and "p.jsonl:3: `set`: " in run.err
    assert states(home) == {}


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("-t", "batch", "p.jsonl"), "cru batch p.jsonl --trust"),
        (
            ("-s", "fuel=3", "--home", "h", "batch", "p.jsonl", "--retry"),
            "cru --home h batch p.jsonl --retry --set fuel=3",
        ),
        (("--mode", "plan", "batch", "p.jsonl"), "cru batch p.jsonl --mode plan"),
    ],
)
def test_flags_before_the_command_are_shown_where_they_belong(
    home: HomeDir, words: tuple[str, ...], meant: str
) -> None:
    run = cru(*words, home=home)
    assert run.code == 2 and f"did you mean: {meant}\n" in run.err, run.err


@pytest.mark.slow
def test_the_suggested_command_has_all_that_matters_and_no_secret(home: HomeDir) -> None:
    scripted(home, "error: 400 not today\n---\ntext: now\n")
    (home.project / "p.jsonl").write_text('{"prompt": "one", "id": "a"}\nno\n')
    run = cru(
        "batch", "p.jsonl", "--name", "n", "--skip-bad", "-t", "-s", "fuel=3", "-s", "api_key=secret", "--max-cost", "2",
        home=home,
    )  # fmt: skip
    command = run.err.rpartition("once more: ")[2].strip()
    assert command == "cru batch p.jsonl --name n --max-cost 2 --set fuel=3 --skip-bad --trust --retry"
    scripted(home)
    assert cru(*command.split()[1:], home=home).code == 0


@pytest.mark.slow
def test_what_came_on_standard_input_goes_on_from_the_queue(home: HomeDir) -> None:
    scripted(home, "error: 400 not today\n---\ntext: now\n")
    run = cru("batch", "-", "--name", "n", home=home, input="one\n")
    command = run.err.rpartition("once more: ")[2].strip()
    assert (run.code, command) == (1, "cru batch --name n --retry")
    scripted(home)
    again = cru(*command.split()[1:], home=home)
    assert again.code == 0 and "1 done" in again.out
    assert cru("batch", "--name", "m", home=home).err.startswith("cru: nothing is known of a batch m")


def test_a_dry_run_says_what_it_costs_at_least(home: HomeDir) -> None:
    home.configure("[models.mock]\ninput_price = 1_000\noutput_price = 0\n", url="http://127.0.0.1:9/v1")
    write_items(home, {"prompt": "x" * 40_000, "id": "a"}, {"prompt": "y", "id": "b", "model": "other"})
    run = cru("batch", "p.jsonl", "--name", "n", "--dry-run", home=home)
    least = next(line for line in run.out.splitlines() if line.startswith("at least $"))
    assert 10.0 < float(least.split()[2].removeprefix("$").removesuffix(":")) < 20.0, run.out
    assert "one request for each of 1 item" in least
    assert 'the price of openai_compatible:other is not known: [models."ID"] input_price' in run.out


def test_a_dry_run_reckons_with_what_finished_items_have_cost(home: HomeDir) -> None:
    scripted(home)
    write_items(home, {"prompt": "one", "id": "a"})
    assert cru("batch", "p.jsonl", "--name", "n", home=home).code == 0
    write_items(home, {"prompt": "one", "id": "a"}, {"prompt": "two", "id": "b"}, {"prompt": "three", "id": "c"})
    run = cru("batch", "p.jsonl", "--name", "n", "--dry-run", home=home)
    assert "about $1.00, if they cost what the 1 finished ones did ($0.50 each)" in run.out


def test_a_dry_run_asks_nothing(home: HomeDir) -> None:
    scripted(home)
    write_items(home, {"prompt": "x" * 4000, "id": "a"}, {"prompt": "two", "id": "b", "model": "m"})
    run = cru("batch", "p.jsonl", "--name", "n", "--dry-run", home=home)
    assert run.code == 0 and "batch n: 2 items, 0 finished, 2 to ask" in run.out and "about 1,000 tokens" in run.out
    assert states(home) == {} and not (home.cru / "contexts" / "n-a").exists()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("batch", "--parallel", "0", "p"), "--parallel needs 1 or more"),
        (("batch", "p", "--max-deaths", "99999999999999999999"), "--max-deaths needs 1 or more, 1000000 at most"),
        (("batch", "-"), "need a name"),
        (("batch", "p", "--name", "../x"), "--name has letters"),
        (("batch", "p", "--on-interrupted", "maybe"), "no choice `maybe`"),
        (("batch", "p", "--seconds", "soon"), "--seconds needs seconds"),
        (("worker", "--concurrency", "none"), "--parallel needs a number"),
        (("worker", "--paralel", "2"), "did you mean: cru worker --parallel 2"),
        (("worker", "--jobs", "2"), "cru worker --help says what it takes"),
        (("batch", "p", "--jobs", "2"), "cru batch --help says what it takes"),
        (("batch", "p", "--concurrency", "0"), "--parallel needs 1 or more"),
        (("batch", "p", "--parallel"), "cru batch --help says what it takes"),
        (("oq", "--jobs"), "cru oq --help says what it takes"),
        (("trust", "--jobs"), "cru trust --help says what it takes"),
        (("worker", "--onec"), "does not take --onec"),
    ],
)
def test_what_cannot_be_meant_is_refused(home: HomeDir, words: tuple[str, ...], text: str) -> None:
    run = cru(*words, home=home)
    assert run.code == 2 and text in run.err, run.err
