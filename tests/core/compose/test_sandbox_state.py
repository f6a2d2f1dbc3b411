"""What a session says of its sandbox before it has looked: nothing, rather than that there is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.kit.closing import closed_later

from cru.core.compose import Start, build


@pytest.mark.parametrize(("mode", "state"), [("off", "off"), ("auto", ""), ("on", "")])
def test_only_a_sandbox_that_is_off_is_called_off(tmp_path: Path, mode: str, state: str) -> None:
    env = {"HOME": str(tmp_path), "CRU_SANDBOX": mode}
    built = build(Start(tmp_path / "home", "c", env, tmp_path, tmp_path))
    closed_later(built.store)
    assert built.session.parts.services.sandbox.state == state
