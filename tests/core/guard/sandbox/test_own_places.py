"""Places that `[sandbox]` names and that mean nothing are told, at the start and by `cru doctor`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.core.guard.sandbox.conftest import Surroundings
from tests.core.guard.sandbox.test_escapes import run
from tests.kit import Reply, cru, server
from tests.kit.sandbox import needs_sandbox

PLACES = {
    "writable = ['~/nowhere']": "writable: `~/nowhere` is not there",
    "writable = ['~/.profile']": "writable: `~/.profile` is a file",
    "writable = ['~/.ssh']": "writable: `~/.ssh` stays hidden",
    "writable = ['~/.cru/plugins']": "writable: `~/.cru/plugins` stays hidden",
    "writable = ['/']": "writable: `/` cannot be writable",
    "writable = ['/dev']": "writable: `/dev` cannot be writable",
    "writable = ['/tmp']": "writable: `/tmp` cannot be writable",
    "hidden = ['.']": "hidden: `.` is the project",
    "hidden = ['/']": "hidden: `/` cannot be hidden",
    "hidden = ['nowhere']": "hidden: `nowhere` is not there",
}


@pytest.mark.slow
@needs_sandbox
def test_they_are_told_by_doctor(surroundings: Surroundings) -> None:
    here = surroundings.here
    (here.cru / "plugins").mkdir()
    lists = {
        kind: [place[place.index("'") + 1 : -2] for place in PLACES if place.startswith(kind)]
        for kind in ("writable", "hidden")
    }
    here.configure(f"[sandbox]\nmode = 'auto'\nwritable = {lists['writable']}\nhidden = {lists['hidden']}\n")
    done = cru("doctor", "--offline", home=here)
    assert [text for text in PLACES.values() if f"[sandbox] {text}" not in done.out] == [], done.out


@pytest.mark.sample(1)
@needs_sandbox
@pytest.mark.parametrize(
    "place", ["writable = ['/']", "writable = ['/dev']", "hidden = ['/']", "writable = ['~/.cru/plugins']"]
)
def test_they_change_nothing_and_a_run_tells_them(surroundings: Surroundings, place: str) -> None:
    (surroundings.here.cru / "plugins").mkdir()
    commands = [
        "echo x > /dev/null && head -c 3 /dev/zero | wc -c",
        "echo x > {out}/new; echo x > {cru}/plugins/a.lua",
        "ls {out}",
    ]
    results = run(surroundings, commands, config=f"[sandbox]\nmode = 'on'\n{place}\n")
    assert results[0] == "3" and results[2] == "kept"
    assert "Read-only file system" in results[1] and not (surroundings.here.cru / "plugins" / "a.lua").exists()
    with server([Reply("done")]) as model:
        surroundings.here.configure(f"[sandbox]\nmode = 'on'\n{place}\n", url=model.url)
        done = cru("-C", "c", "go", home=surroundings.here)
    assert done.err.count(PLACES[place]) == 1


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize(("folder", "told"), [("home", "your home, or holds it"), ("/", "the whole disk (/)")])
def test_a_project_that_is_most_of_the_disk_is_told(surroundings: Surroundings, folder: str, told: str) -> None:
    here = surroundings.here
    with server([Reply("done")]) as model:
        here.configure("[sandbox]\nmode = 'on'\n", url=model.url)
        done = cru("go", home=here, cwd=Path("/") if folder == "/" else here.path)
    assert done.out == "done\n" and done.err.count(f"the project is {told}") == 1
    assert "the project is" not in cru("doctor", "--offline", home=here).out
