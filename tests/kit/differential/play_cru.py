"""A case played to cru: the real command, with the hooks of that dialect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.kit.differential.cases import Case
from tests.kit.differential.compare import Play
from tests.kit.differential.world import ScriptedModel, firings, prepare
from tests.kit.home import home
from tests.kit.run import cru
from tests.kit.server import server

from cru.core.hooks.dialects import load_dialect
from cru.core.hooks.dialects.codex.patches import PATCH, read_patch

MODES = {"all": "trust", "ask": "ask"}


def play(case: Case, dialect: str, folder: Path) -> Play:
    tools = load_dialect(dialect).tools

    def named(tool: str, args: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        patch = read_patch(args.get("command", "")) if tool == PATCH else None
        if patch:
            return patch.tool, dict(patch.args)
        own = tools.own_name(tool)
        return own, tools.to_own(own, args)

    model = ScriptedModel(case.script, named)
    here = home(folder)
    cwd = prepare(case, dialect, here)
    shown = ""
    with server(model) as listening:
        here.configure(f'mode = "{MODES[case.mode]}"\n[hooks]\ndialects = ["{dialect}"]\n', listening.url)
        for prompt in (case.prompt, *case.prompts):
            done = cru("--hooks=all", prompt, home=here, cwd=cwd, env=case.env)
            shown += done.out + done.err
    assert "Traceback" not in shown, shown
    return Play(here.path, here.project, firings(here), model.texts, done.code, shown)
