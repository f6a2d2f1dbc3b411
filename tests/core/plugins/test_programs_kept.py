"""A program that guards and cannot be loaded anew: what it guarded is refused until a person has mended it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.core.plugins.test_lifecycle import Shelf

from cru.core.plugins.errors import PluginFailed, PluginMissing

GUARD = """#!/bin/sh
if [ "$1" = --schema ]; then
  echo '{"name": "guard", "description": "guards", "hooks": ["pre_tool"]}'
  exit 0
fi
echo '{}'
"""
CALL = 'call: bash {"command": "touch RAN"}\n---\ntext: ok\n'
BROKEN: dict[str, Callable[[Path], object]] = {
    "not executable": lambda file: file.chmod(0o644),
    "empty": lambda file: file.write_text(""),
    "no interpreter": lambda file: file.write_text("#!/nowhere\n"),
    "schema fails": lambda file: file.write_text("#!/bin/sh\nexit 3\n"),
}


def put(shelf: Shelf) -> Path:
    file = shelf.put("guard", GUARD)
    file.chmod(0o755)
    return file


async def runs(shelf: Shelf) -> bool:
    """Whether the next call happens."""
    ran = shelf.world.path / "project" / "RAN"
    ran.unlink(missing_ok=True)
    await shelf.world.asked("go")
    return ran.exists()


def shelf_with(tmp_path: Path, *, strict: bool = False) -> Shelf:
    shelf = Shelf(tmp_path, watch=True)
    shelf.extensions.strict = strict
    (tmp_path / "script.txt").write_text("---\n".join([CALL] * 5))
    shelf.parts.gate.mode = "trust"
    return shelf


@pytest.mark.parametrize("what", BROKEN)
def test_what_it_guarded_is_refused_until_it_is_mended_or_disabled(tmp_path: Path, what: str) -> None:
    shelf = shelf_with(tmp_path)
    file = put(shelf)

    async def work() -> None:
        assert await runs(shelf)
        BROKEN[what](file)
        await shelf.extensions.refresh()
        assert "the calls that it guarded are refused" in shelf.world.notices()[-1]
        assert not await runs(shelf)
        assert "the plugin guard guards this and cannot be loaded" in shelf.world.results()[-1]
        with pytest.raises(PluginFailed):
            await shelf.extensions.reload("guard")
        await shelf.extensions.reload_all()
        assert not await runs(shelf)
        put(shelf)
        await shelf.extensions.refresh()
        assert await runs(shelf)
        BROKEN[what](file)
        await shelf.extensions.refresh()
        await shelf.extensions.disable("guard")
        assert await runs(shelf)

    shelf.run(work)


def test_with_strict_one_that_is_gone_must_come_back(tmp_path: Path) -> None:
    shelf = shelf_with(tmp_path, strict=True)
    file = put(shelf)

    async def work() -> None:
        await shelf.extensions.prepare_prompt()
        file.unlink()
        for _ in range(2):
            with pytest.raises(PluginMissing, match="the plugin guard was active and is gone"):
                await shelf.extensions.prepare_prompt()
        put(shelf)
        await shelf.extensions.prepare_prompt()

    shelf.run(work)
