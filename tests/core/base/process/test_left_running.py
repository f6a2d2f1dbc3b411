"""What is named as left running at the end of a session."""

from __future__ import annotations

import asyncio
import subprocess

import pytest

from cru.core.base.process import descent, left_running


@pytest.mark.parametrize("stays", [True, False])
def test_what_is_about_to_be_gone_is_not_named(monkeypatch: pytest.MonkeyPatch, stays: bool) -> None:
    """The first process in a sandbox ends a moment after what watches over it."""
    with subprocess.Popen(["sleep", "600" if stays else "0"]) as child:
        looks: list[int] = []

        def members(_: object) -> list[int]:
            looks.append(child.pid)
            if len(looks) == 1:
                return [child.pid]
            if not stays:
                child.wait()
            return [child.pid] if child.poll() is None else []

        monkeypatch.setattr(descent, "members", members)
        monkeypatch.setattr(left_running, "_is_there", lambda mark: True)
        ended = asyncio.run(left_running.end_marked("mark", 5.0))
    assert ended.is_over and [name.endswith(f"({child.pid})") for name in ended.names] == ([True] if stays else [])
