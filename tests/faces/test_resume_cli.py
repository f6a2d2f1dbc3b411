"""`cru --resume`: go on with what was killed, failed or interrupted."""

from __future__ import annotations

import pytest
from tests.kit import Call, Hang, HomeDir, Reply, Status, cru, kill_at, pty, server, start


def test_nothing_to_resume_is_an_error(home: HomeDir) -> None:
    with server([Reply("done")]) as model:
        home.configure(url=model.url)
        assert cru("--resume", home=home).code == 1
        cru("hi", home=home)
        run = cru("--resume", home=home)
    assert run.code == 1 and run.out == "" and "no unfinished prompt" in run.err


def test_after_a_kill_in_the_first_request_the_same_prompt_is_sent_again(home: HomeDir) -> None:
    with server([Hang(), Reply("answer")]) as model:
        home.configure(url=model.url)
        with start("the question", home=home) as run:
            assert kill_at(run, lambda: len(model.requests) == 1)
        assert cru("--resume", home=home).out == "answer\n"
        assert model.requests[1].body["messages"] == model.requests[0].body["messages"]
    assert [e["content"] for e in home.log() if e.get("role") == "user"] == ["the question"]


def test_after_a_kill_in_the_second_round_nothing_is_done_twice(home: HomeDir) -> None:
    command = Call("bash", {"command": "echo x >>count; cat count"})
    with server([Reply(calls=[command]), Hang(), Reply("answer")]) as model:
        home.configure(url=model.url)
        with start("-t", "go", home=home) as run:
            assert kill_at(run, lambda: len(model.requests) == 2)
        assert cru("-t", "--resume", home=home).out == "answer\n"
        assert model.requests[2].body["messages"] == model.requests[1].body["messages"]
    assert (home.project / "count").read_text() == "x\n"


def test_after_an_error_of_the_model_the_hint_is_what_works(home: HomeDir) -> None:
    with server([Status(401, body="bad key"), Reply("answer")]) as model:
        home.configure(url=model.url)
        run = cru("-C", "work", "hi", home=home)
        hint = run.err.splitlines()[-1]
        assert hint.startswith("resume with: cru ")
        assert cru(*hint.removeprefix("resume with: cru ").split(), home=home).out == "answer\n"


@pytest.mark.parametrize("flags", ["-t", "--mode plan", "--mode plan -t", "--model mock -t"])
def test_the_hint_keeps_what_the_run_was_allowed(home: HomeDir, flags: str) -> None:
    with server([Status(400)]) as model:
        home.configure(url=model.url)
        run = cru(*flags.split(), "hi", home=home)
    assert run.err.endswith(f"resume with: cru {flags} -C default --resume\n")


def reader(home: HomeDir, tools: str = "read") -> None:
    """A card with few tools."""
    file = home.path / ".claude" / "agents" / "reader.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"---\nname: reader\ndescription: reads\ntools: {tools}\n---\nRead.\n")


def test_the_hint_keeps_the_agent_card(home: HomeDir) -> None:
    reader(home)
    with server([Status(400)]) as model:
        home.configure(url=model.url)
        run = cru("-t", "--agent", "reader", "hi", home=home)
    assert run.err.endswith("resume with: cru -t --agent reader -C default --resume\n")


def test_a_prompt_goes_on_under_its_agent_card(home: HomeDir) -> None:
    reader(home)
    with server([Hang(), Status(400), Reply("answer")]) as model:
        home.configure(url=model.url)
        with start("--agent", "reader", "the question", home=home) as run:
            assert kill_at(run, lambda: len(model.requests) == 1)
        assert cru("--resume", home=home).code == 1
        assert cru("-t", "--resume", home=home).out == "answer\n"
        tools = [[tool["function"]["name"] for tool in request.body["tools"]] for request in model.requests]
    assert tools == [["read"]] * 3


@pytest.mark.parametrize("change", ["gone", "changed"])
def test_a_prompt_whose_agent_card_is_another_now_is_not_resumed(home: HomeDir, change: str) -> None:
    reader(home)
    with server([Status(400), Reply("answer")]) as model:
        home.configure(url=model.url)
        cru("--agent", "reader", "the question", home=home)
        if change == "gone":
            (home.path / ".claude" / "agents" / "reader.md").unlink()
        else:
            reader(home, "read, write")
        run = cru("--resume", home=home)
        assert run.code and "Traceback" not in run.err and "reader" in run.err and len(model.requests) == 1
        if change == "changed":
            assert "has changed since" in run.err
            assert cru("--agent", "reader", "--resume", home=home).out == "answer\n"


def test_a_prompt_with_a_key_is_not_gone_on_with_without_its_agent_card(home: HomeDir) -> None:
    reader(home)
    with server([Status(400), Reply("answer")]) as model:
        home.configure(url=model.url)
        again = ("--idempotency-key", "k", "the question")
        cru("--agent", "reader", *again, home=home)
        run = cru(*again, home=home)
        assert run.code == 1 and "add --agent reader" in run.err and len(model.requests) == 1
        assert cru("--agent", "reader", *again, home=home).out == "answer\n"


def test_a_model_that_cannot_be_is_left_out_of_the_hint(home: HomeDir) -> None:
    (home.path / "model.txt").write_text("text: done\n")
    home.configure(f'model = "scripted:{home.path}/model.txt"\n')
    run = cru("-t", "--model", "script:foo", "hi", home=home)
    assert run.code == 5 and run.err.endswith("resume with: cru -t -C default --resume\n")
    with pty("--model", "script:foo", home=home) as terminal:
        terminal.expect("> ")
        terminal.line("again")
        terminal.expect("there is no provider `script`")
        assert terminal.eof() == 0
        terminal.expect("resume with: cru -C default --resume")
    assert cru("-t", "-C", "default", "--resume", home=home).out == "done\n"


def test_a_server_of_ones_own_may_have_a_model_of_any_name(home: HomeDir) -> None:
    with server([Status(400)]) as model:
        home.configure(url=model.url)
        run = cru("--model", "antropic:x", "hi", home=home)
    assert run.code == 1 and run.err.endswith("resume with: cru --model antropic:x -C default --resume\n")


def test_a_model_whose_key_is_missing_stays_in_the_hint(home: HomeDir) -> None:
    run = cru("--model", "anthropic:x", "hi", home=home)
    assert run.code == 5 and run.err.endswith("resume with: cru --model anthropic:x -C default --resume\n")


def test_a_resumed_turn_that_fails_again_can_be_resumed_again(home: HomeDir) -> None:
    with server([Status(400), Status(400), Reply("answer")]) as model:
        home.configure(url=model.url)
        assert [cru(*words, home=home).code for words in (("hi",), ("--resume",), ("--resume",))] == [1, 1, 0]


@pytest.mark.parametrize("words", [(), ("-v",), ("--json",)])
def test_resume_goes_with_the_flags_of_a_run(home: HomeDir, words: tuple[str, ...]) -> None:
    with server([Status(400), Reply("answer")]) as model:
        home.configure(url=model.url)
        cru("hi", home=home)
        run = cru(*words, "--resume", home=home)
    assert run.code == 0 and "answer" in run.out


def test_attached_files_are_not_lost_by_a_failure(home: HomeDir) -> None:
    (home.project / "a.txt").write_text("content of a")
    with server([Status(400), Reply("answer")]) as model:
        home.configure(url=model.url)
        cru("--attach", "a.txt", "look", home=home)
        (home.project / "a.txt").unlink()
        assert cru("--resume", home=home).code == 0
    assert "content of a" in str(model.requests[1].body["messages"])
