#!/usr/bin/env python3
# forkable: only what a run looks up late is replaced
"""The real command with the toy dialect in it: everything but the list of extensions is as installed.

usage: cru_with_toy.py RULES ARG…     (RULES is a file in the toy dialect's language)

A file of the same name that ends in .queue holds a prompt that is queued while the first turn runs.
"""

import sys
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.programs.toy_dialect import Toy

from cru.core import compose as app
from cru.core.events.stream import Published, StateChanged
from cru.faces.cli import session_run
from cru.faces.cli.entry import run_and_exit


def queued(text: str) -> None:
    def build(*args: Any, **named: Any) -> app.SessionBundle:
        built = build_with_toy(*args, **named)
        waiting = [text]

        def submit(item: Published) -> None:
            if waiting and built.session.busy:
                built.session.submit(waiting.pop())

        built.session.parts.bus.stream.subscribe(submit, StateChanged)
        return built

    session_run.build = build  # type: ignore[attr-defined]


rules = Path(sys.argv[1])
build_with_toy = partial(app.build, extensions=(Toy("toy", rules.read_text()),))
session_run.build = build_with_toy  # type: ignore[attr-defined]
if rules.with_suffix(".queue").exists():
    queued(rules.with_suffix(".queue").read_text())
run_and_exit(sys.argv[2:])
