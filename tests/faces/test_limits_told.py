"""What a person sees of a turn that goes round in circles, or has cost what one prompt may cost."""

from __future__ import annotations

from tests.kit import Call, HomeDir, Received, Reply, cru, pty, server

LIST = Reply(calls=[Call("ls", {})])


def loop(_request: Received) -> Reply:
    return LIST


def test_a_circle_ends_a_run_that_nobody_watches(home: HomeDir) -> None:
    with server(loop) as model:
        home.configure(url=model.url)
        run = cru("go", home=home)
    assert (run.code, len(model.requests)) == (3, 16)
    assert "cru: halted: loop: 15 rounds brought nothing new" in run.err
    nudged = [
        request for request in model.requests if "Do not repeat them" in str(request.body["messages"][-1]["content"])
    ]
    assert len(nudged) == 1


def test_a_person_is_asked_about_a_circle_and_about_more_fuel(home: HomeDir) -> None:
    with server(loop) as model:
        home.configure("fuel = 3\n", url=model.url)
        with pty("go", home=home) as terminal:
            for cost in (3, 6, 9):
                terminal.expect(f"this prompt has cost {cost} tool batches and continuations; go on for 3 more?")
                terminal.send("y\n")
            terminal.expect("10 rounds brought nothing new; go on?")
            terminal.send("n\n")
            assert terminal.wait() == 3
    assert len(model.requests) == 11
