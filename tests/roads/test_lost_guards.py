"""Every road on which a guard can be lost: what is told at the start, and that a run which must have it does not begin.

The table is tests/data/lost_guards.json.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec import Struct
from tests.faces.hooks_home import model
from tests.kit import HomeDir, cru, trust_project

DATA = Path(__file__).parents[1] / "data" / "lost_guards.json"
LINK = "-> "


class Expected(Struct, frozen=True, forbid_unknown_fields=True):
    """How a run ends, and what is on standard error."""

    exit: int
    told: list[str]


class Road(Struct, frozen=True, forbid_unknown_fields=True):
    """One way to lose a guard.

    files: below the home and the project folder; "-> TARGET" makes a link, a first line `#!` a program
    modes: of files, where that is not so
    config: of config.toml
    told: on standard error of a run that goes on
    strict: how a run with --strict-hooks ends
    trusted: the project is trusted before
    required: `[plugins.guard] required = true` ends it, too
    encoding: of the files
    """

    id: str
    about: str
    files: dict[str, str]
    told: list[str]
    strict: Expected
    exit: int = 0
    config: str = ""
    modes: dict[str, int] = {}
    trusted: bool = False
    required: bool = False
    encoding: str = "utf-8"


class Table(Struct, frozen=True, forbid_unknown_fields=True):
    rows: list[Road]


ROADS = msgspec.json.decode(DATA.read_bytes(), type=Table).rows


def write(home: HomeDir, road: Road, config: str) -> None:
    model(home, "text: Done.\n", config)
    for name, text in road.files.items():
        path = home.path.parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith(LINK):
            path.symlink_to(text.removeprefix(LINK))
            continue
        path.write_text(text, road.encoding)
        path.chmod(road.modes.get(name, 0o755 if text.startswith("#!") else 0o644))
    if road.trusted:
        trust_project(home)


def run(home: HomeDir, *flags: str) -> Expected:
    done = cru(*flags, "hello", home=home)
    assert "Traceback" not in done.err
    asked = (home.context() / "trace.jsonl").exists() and '"request"' in (home.context() / "trace.jsonl").read_text()
    assert asked == (done.code == 0), "a run that ends for a lost guard asks the model nothing"
    return Expected(done.code, [done.err])


def check(actual: Expected, expected: Expected) -> None:
    (err,) = actual.told
    missing = [text for text in expected.told if text not in err]
    assert (actual.exit, missing) == (expected.exit, []), err


@pytest.mark.sample(15)
@pytest.mark.parametrize("road", ROADS, ids=lambda road: road.id)
def test_a_lost_guard_is_told(home: HomeDir, road: Road) -> None:
    write(home, road, road.config)
    check(run(home), Expected(road.exit, road.told))


@pytest.mark.sample(15)
@pytest.mark.parametrize("road", ROADS, ids=lambda road: road.id)
def test_with_strict_hooks_the_run_does_not_begin(home: HomeDir, road: Road) -> None:
    write(home, road, road.config)
    check(run(home, "--strict-hooks"), road.strict)


@pytest.mark.sample(15)
@pytest.mark.parametrize("road", [road for road in ROADS if road.required], ids=lambda road: road.id)
def test_a_required_plugin_that_does_not_run_ends_the_run(home: HomeDir, road: Road) -> None:
    table = "[plugins.guard]\n"
    before, _, after = road.config.partition(table)
    write(home, road, f"{before}{table}required = true\n{after}")
    check(run(home), Expected(3, ["required", "guard: "]))


RUN_ONLY = {
    "lua-error", "lua-no-words", "lua-memory", "lua-forgotten", "python-error", "python-exit", "program-schema", "program-setting",
}  # fmt: skip
"""What shows only when a plugin runs."""


@pytest.mark.sample(15)
@pytest.mark.parametrize("road", [road for road in ROADS if road.id not in RUN_ONLY], ids=lambda road: road.id)
def test_the_check_agrees_with_strict_hooks(home: HomeDir, road: Road) -> None:
    write(home, road, road.config)
    done = cru("hooks", "check", home=home)
    assert (done.code != 0) == (road.strict.exit != 0), done


def test_every_road_is_one_of_its_own() -> None:
    assert len({road.id for road in ROADS}) == len(ROADS) > 20
    assert all(road.told or road.required for road in ROADS)
