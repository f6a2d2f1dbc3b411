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
    assert "cru: gave up: 15 rounds brought nothing new" in run.err
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
                terminal.expect("stop > ")
                terminal.send("y\n")
            terminal.expect("10 rounds brought nothing new; go on?")
            terminal.expect("y [words] go on, ? help, n [words] stop > ")
            terminal.send("maybe\n")
            terminal.expect("`maybe` is no answer")
            terminal.expect("stop > ")
            terminal.send("?\n")
            terminal.expect("stop here; what follows is told to the model beside your next prompt")
            terminal.expect("stop > ")
            terminal.send("n look at X\n")
            assert terminal.wait() == 3
    assert len(model.requests) == 11


def test_continuations_beyond_a_limit_end_a_run_like_any_limit(home: HomeDir) -> None:
    (home.cru / "plugins").mkdir(parents=True)
    (home.cru / "plugins" / "again.lua").write_text(
        'cru.on("turn:complete", function() return { inject = { content = "go on" } } end)'
    )
    for extra, reason in (
        ((), "gave up: 15 rounds"),
        (("-s", "max_continuations=4"), "out of budget: 4 continuations for one prompt"),
    ):
        with server(lambda _request: Reply(text="Fine.")) as model:
            home.configure(url=model.url)
            run = cru(*extra, "go", home=home)
        assert (run.code, run.err.count("no progress")) == (3, 1) and f"cru: {reason}" in run.err


def test_a_test_runner_with_a_clock_ends_a_run_and_its_polls_are_told(home: HomeDir) -> None:
    runner = Reply(calls=[Call("bash", {"command": 'echo "1 failed in 0.$(date +%N)s"'})])
    with server(lambda _request: runner) as model:
        home.configure('mode = "trust"\npoll_backoff = 0.01\n', url=model.url)
        run = cru("go", home=home)
    assert run.code == 3 and len(model.requests) <= 40, (run, len(model.requests))
    assert run.err.count("equal polls are up to 0.01 s apart (setting poll_backoff)") == 1
    assert "cru: gave up: " in run.err and "rounds brought nothing new (setting max_idle_rounds)" in run.err
