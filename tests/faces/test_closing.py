"""What is opened for a run is closed whatever fails meanwhile, and every failure is told."""

from __future__ import annotations

import asyncio
import json
import os
import signal

import pytest
from tests.kit import Call, HomeDir, Reply, pty, server
from tests.kit.waiting import wait_until

from cru.faces.cli import entry, session_run
from cru.faces.cli.entry import _run_guarded

STUBBORN = """\
import asyncio
from cru import on

@on("tool:before_call")
async def hang(ctx, event):
    open("begun", "w").close()
    while True:
        try:
            await asyncio.sleep(60)
        except BaseException:
            pass
"""


@pytest.mark.parametrize("in_block", [None, ValueError("of the block")], ids=["block ends", "block raises"])
def test_every_step_of_closing_is_taken(in_block: Exception | None, capsys: pytest.CaptureFixture[str]) -> None:
    taken: list[str] = []

    def step(name: str, error: str = "") -> None:
        taken.append(name)
        if error:
            raise OSError(error)

    async def waiting(name: str, error: str = "") -> None:
        step(name, error)

    async def main() -> None:
        async with session_run._closed_after(
            lambda: waiting("session", "no room"), lambda: waiting("parts"), lambda: step("signals", "gone"),
            lambda: step("face"),
        ):  # fmt: skip
            if in_block is not None:
                raise in_block

    with pytest.raises(ValueError if in_block else OSError, match="of the block" if in_block else "no room"):
        asyncio.run(main())
    assert taken == ["session", "parts", "signals", "face"]
    told = ["while closing: OSError: no room"] * bool(in_block) + ["while closing: OSError: gone"]
    assert [line.removeprefix("cru: ") for line in capsys.readouterr().err.splitlines()] == told


def test_a_run_without_memory_ends_with_its_result(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    def exhausted(_parsed: object) -> int:
        raise MemoryError

    monkeypatch.setattr(entry, "_run", exhausted)
    assert _run_guarded(["--json", "hi"]) == 1
    captured = capfdbinary.readouterr()
    (line,) = [json.loads(line) for line in captured.out.splitlines()]
    assert (line["type"], line["code"], line["payload"]["error"]) == ("result", 1, "there is not enough memory")
    assert captured.err.startswith(b"cru: there is not enough memory\n")


@pytest.mark.slow
@pytest.mark.real_start
def test_the_third_signal_gives_the_terminal_back_as_it_was(home: HomeDir) -> None:
    (home.cru / "plugins").mkdir(parents=True)
    (home.cru / "plugins" / "stubborn.py").write_text(STUBBORN)
    with server([Reply("", calls=[Call("ls", {})])]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("hi")
            wait_until((home.project / "begun").exists)
            assert not terminal.is_cooked()
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
                os.kill(terminal.pid, number)
            assert terminal.wait() >= 128
            assert terminal.is_cooked()
