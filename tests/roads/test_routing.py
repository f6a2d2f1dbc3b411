"""Categories, cost and budgets through the real command: what a person and a program see."""

from __future__ import annotations

import msgspec
from tests.kit import Call, Drop, HomeDir, Received, Reply, Status, cru, pty, server

from cru.core.base.values.messages import Usage

CHAIN = 'model = "deep"\nrequest_tries = 1\n[categories]\ndeep = ["first", "second"]\n'
PRICED = '[models."mock"]\ninput_price = 10_000\noutput_price = 0\n'


def test_the_second_model_of_a_category_answers_and_both_sides_are_told(home: HomeDir) -> None:
    busy = Status(429, {"retry-after": "0"}, "slow down")
    half = Drop(900, reply=Reply("half an answer that is cut " * 9, pieces=4))
    with server([busy, Reply("Here."), half, Reply("Again.")]) as model:
        home.configure(CHAIN, url=model.url)
        run = cru("hello", home=home)
        assert (run.code, run.out) == (0, "Here.\n")
        first, second = "openai_compatible:first", "openai_compatible:second"
        told = f"{first} failed: openai_compatible answered 429: slow down; {second} answers instead (category deep)"
        assert f"cru: {told}\n" in run.err
        again = cru("--json", "again", home=home)
    lines = [msgspec.json.decode(line) for line in again.out.splitlines()]
    kinds = [line["type"] for line in lines]
    assert kinds.index("streaming:delta") < kinds.index("reply:dropped") < kinds.index("notice")
    assert lines[-1]["payload"]["response"] == "Again." and lines[-1]["payload"]["usage"]["requests"] == 2
    assert [request.body["model"] for request in model.requests] == ["first", "second", "first", "second"]
    shown = cru("trace", home=home)
    assert f"fallback   1: {first} failed (" in shown.out


def test_text_of_a_reply_that_counts_no_more_stands_on_a_line_of_its_own(home: HomeDir) -> None:
    with server([Reply("I cannot", reason="content_filter"), Reply("I can.")]) as model:
        home.configure(CHAIN, url=model.url)
        run = cru("hello", home=home)
    assert (run.code, run.out) == (0, "I cannot\nI can.\n")
    assert "what openai_compatible:first has said so far does not count" in run.err


def spend(_request: Received) -> Reply:
    return Reply(calls=[Call("ls", {})], usage=Usage(input=100, output=10))


def test_a_budget_ends_a_run_that_nobody_watches_and_the_next_prompt_goes_on(home: HomeDir) -> None:
    with server([spend, spend, lambda _request: Reply("Done.")]) as model:
        home.configure(f"[budget]\nmax_cost = 2\n{PRICED}", url=model.url)
        run = cru("go", home=home)
        assert (run.code, len(model.requests)) == (3, 2)
        assert "cru: out of budget: this prompt has cost $2.00 of $2.00; a new prompt (`go on`)" in run.err
        assert cru("go on", home=home).out == "Done.\n"
    [last, everything] = cru("/cost", home=home).out.splitlines()
    assert last.endswith("1 request, 100 tokens in (0 cached), 10 out, $1.00") and everything.endswith("$3.00")


def test_a_person_is_asked_for_more_and_may_raise_it(home: HomeDir) -> None:
    with server([spend, spend, lambda _request: Reply("Done.")]) as model:
        home.configure("[budget]\nmax_tokens = 200\n", url=model.url)
        with pty("go", home=home) as terminal:
            terminal.expect("this prompt has used 220 tokens of 200; go on for 200 more?")
            terminal.expect("stop > ")
            terminal.send("y\n")
            terminal.expect("Done.")
            assert terminal.wait() == 0
        assert len(model.requests) == 3


def test_what_a_program_reads_has_tokens_and_cost(home: HomeDir) -> None:
    with server([spend, Reply("Done.", usage=Usage(50, 5))]) as model:
        home.configure(PRICED, url=model.url)
        run = cru("--json", "go", home=home)
    assert msgspec.json.decode(run.out.splitlines()[-1])["payload"]["usage"] == {
        "requests": 2, "input": 150, "output": 15, "cache_read": 0, "cache_write": 0, "cost": 1.5, "unpriced": 0, "estimated": 0,
    }  # fmt: skip


def test_a_misspelt_category_is_not_sent_to_anybody(home: HomeDir) -> None:
    with server([]) as model:
        home.configure(CHAIN.replace('model = "deep"', 'model = "depe"'), url=model.url)
        run = cru("hello", home=home)
        kept = cru("-m", "deeep", home=home)
    assert (run.code, model.requests) == (5, []) and "did you mean the category `deep`?" in run.err
    assert kept.code == 5 and "did you mean `deep`?" in kept.err
