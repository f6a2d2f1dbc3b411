"""`make demo`, with stubs in the place of the programs that it starts."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.kit import HomeDir

from cru.core.models.pull import weights_path

ROOT = Path(__file__).parents[2]
CRU = """#!/bin/sh
echo "$CRU_HOME: $*" >> "$LOG"
if [ "$1 $2" = "models pull" ]; then mkdir -p "$CRU_HOME/models" && echo weights > "$CRU_HOME/models/$WEIGHTS"; fi
"""
TOUR = ("README.md", "docs/getting-started.md", "docs/configuration.md")
OVERWRITES_CONFIG = re.compile(r"> *\"?(~|\$HOME|\$\{HOME\})/\.cru/config\.toml")


STEPS = ["Demo 1/4", "Demo 2/4", "Demo 3/4", "Demo 4/4", "Demo done"]


def test_the_model_stays_where_a_plain_run_finds_it_and_no_configuration_is_overwritten(
    home: HomeDir, tmp_path: Path
) -> None:
    programs, demo = tmp_path / "a b ü" / "bin", tmp_path / "demo"
    for folder in (programs, demo, home.cru):
        folder.mkdir(exist_ok=True, parents=True)
    for name, text in (("cru", CRU), ("python", "#!/bin/sh\n")):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    own = {home.cru / "config.toml": 'model = "mine"\n', demo / "config.toml": "username = 'x'\n"}
    for path, text in own.items():
        path.write_text(text)
    weights, log = weights_path("smollm2", home.cru / "models"), tmp_path / "log"
    env = home.env | {"BIN": str(programs), "DEMO_HOME": str(demo), "LOG": str(log), "WEIGHTS": weights.name}
    env.pop("CRU_HOME", None)
    done = subprocess.run(
        ["sh", str(ROOT / "docs" / "demo.sh")], env=env, check=True, stdout=subprocess.PIPE, text=True
    )
    assert [step for line in done.stdout.splitlines() for step in STEPS if step in line] == STEPS
    assert STEPS[-1] in done.stdout.splitlines()[-1]
    assert {path: path.read_text() for path in own} == own
    assert weights.read_text() == weights_path("smollm2", demo / "models").read_text() == "weights\n"
    calls = log.read_text().splitlines()
    assert calls[0] == f"{home.cru}: models pull smollm2"
    assert calls[1:] and all(call.startswith(f"{demo}: ") for call in calls[1:])


def test_the_tour_does_not_overwrite_a_configuration_that_is_there() -> None:
    lines = [f"{page}: {line}" for page in TOUR for line in (ROOT / page).read_text().splitlines()]
    assert [line for line in lines if OVERWRITES_CONFIG.search(line)] == []


def test_the_command_finds_the_programs_in_a_path_with_a_space(tmp_path: Path) -> None:
    checkout = tmp_path / "a b ü"
    (checkout / "docs").mkdir(parents=True)
    (checkout / ".venv" / "bin").mkdir(parents=True)
    (checkout / "Makefile").write_text((ROOT / "Makefile").read_text())
    (checkout / "docs" / "demo.sh").write_text('echo "$BIN"\n')
    for name in ("pyproject.toml", "constraints.txt", ".venv/.installed"):
        (checkout / name).touch()
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
    done = subprocess.run(["make", "demo"], cwd=checkout, env=env, check=True, stdout=subprocess.PIPE, text=True)
    assert done.stdout == f"{checkout}/.venv/bin\n"
