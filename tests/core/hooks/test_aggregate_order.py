"""What several hooks come to does not depend on which of them is done first."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.hooks.crush_world import Made, config

from cru.core.events.bus import Bus
from cru.core.events.payloads import ToolBeforeCall
from cru.core.events.stamp import Origin, Stamp
from cru.core.hooks.model.entry import HookEntry
from cru.core.hooks.model.result import HookRun

OUTPUTS = st.fixed_dictionaries(
    {},
    optional={
        "decision": st.sampled_from(["allow", "deny"]),
        "halt": st.booleans(),
        "reason": st.sampled_from(["a", "b"]),
        "context": st.sampled_from(["x", "y"]),
        "updated_input": st.dictionaries(st.sampled_from(["command", "cwd"]), st.sampled_from(["1", "2"]), max_size=2),
    },
)


class Late(Made):
    """Hooks that are done in a given order."""

    def __init__(self, path: Path, outputs: list[Any], order: list[int]) -> None:
        import msgspec

        runs = {str(n): HookRun(0, msgspec.json.encode(one).decode()) for n, one in enumerate(outputs)}
        super().__init__(path, config(*({"command": name} for name in runs)), runs)
        self._order = order
        self._done = 0

    async def run(self, entry: HookEntry, stdin: bytes, env: Any, stamp: Stamp) -> HookRun:
        run = await super().run(entry, stdin, env, stamp)
        while self._order[self._done] != int(entry.command):
            await asyncio.sleep(0)
        self._done += 1
        return run


def outcome(folder: str, outputs: list[Any], order: list[int]) -> Any:
    async def work() -> Any:
        hooks, bus = Late(Path(folder), outputs, order), Bus(Origin("s", "r"))
        hooks.register(bus)
        made = await bus.dispatch(ToolBeforeCall("bash", {"command": "0"}, "call_1"))
        await hooks.close()
        return made

    return asyncio.run(work())


@settings(max_examples=40, deadline=None)
@given(
    st.lists(OUTPUTS, min_size=2, max_size=5).flatmap(
        lambda made: st.tuples(st.just(made), st.permutations(range(len(made))))
    )
)
def test_the_outcome_is_that_of_the_order_of_the_configuration(drawn: tuple[list[Any], list[int]]) -> None:
    outputs, order = drawn
    with tempfile.TemporaryDirectory() as folder:
        assert outcome(folder, outputs, order) == outcome(folder, outputs, list(range(len(outputs))))
