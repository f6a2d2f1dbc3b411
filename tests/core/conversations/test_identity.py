"""The id of a conversation, after a power cut in its first turn."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.core.conversations.support import Home, said


@pytest.mark.parametrize("has_log", [False, True])
def test_a_meta_file_that_a_power_cut_emptied_is_made_anew(tmp_path: Path, has_log: bool) -> None:
    home = Home(tmp_path)
    earlier = home.open("desk")
    if has_log:
        earlier.append(said("hello"))
    earlier.close()
    path = home.path / "contexts/desk/context_meta.json"
    path.write_bytes(b"")
    context = home.open("desk")
    assert [p.message.partition(",")[0] for p in context.refresh()] == (["was empty"] if has_log else [])
    assert home.open("desk").session_id == context.session_id != earlier.session_id
    assert msgspec.json.decode(path.read_bytes())["session_id"] == context.session_id
    assert [file.name for file in path.parent.glob("context_meta*")] == ["context_meta.json"]
