"""Rows of an attack through the real command: the model makes all calls of a table in one reply, each is judged alone, and what it reads of
each is compared with the row."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from tests.kit import Call, Done, HomeDir, Received, Reply, cru, home, server

DATA = Path(__file__).parents[1] / "data"
REFUSED = "Not allowed by policy"


class Played(Struct):
    """One run. results: what the model reads of each call, in their order"""

    here: HomeDir
    done: Done
    requests: list[Received]
    results: list[str]

    def leaks(self, secret: str) -> bool:
        """Whether the model has read it."""
        return any(secret.encode() in request.raw for request in self.requests)


def table(file: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((DATA / file).read_text())
    return rows


def rules(**lists: Sequence[str]) -> str:
    return "[permissions]\n" + "".join(
        f"{name} = {json.dumps(list(dict.fromkeys(texts)))}\n" for name, texts in lists.items()
    )


def play(
    folder: Path,
    calls: Sequence[Call],
    *,
    mode: str = "ask",
    config: str = "",
    plant: Callable[[HomeDir], object] = lambda here: None,
    flags: Sequence[str] = (),
    inside: bool = False,
    **more: Any,
) -> Played:
    """inside: the project lies in the user's home, as most do"""
    named = [Call(call.name, call.args, f"c{number}") for number, call in enumerate(calls)]
    with server([Reply(calls=named), Reply("done")]) as model:
        here = home(folder, url=model.url, config=config)
        if inside:
            here.project.rmdir()
            here = HomeDir(here.path, here.path / "project")
            here.project.mkdir()
        plant(here)
        done = cru("--mode", mode, *flags, "go", home=here, **more)
        requests = list(model.requests)
    results = {
        str(entry["tool_call_id"]): str(entry["content"])
        for entry in here.log()
        if entry["entry_type"] == "tool_result"
    }
    assert len(results) == len(calls), (done, len(results), len(calls))
    return Played(here, done, requests, [results[call.id] for call in named])
