"""Plugins that are programs, with hooks that write down what they hear and answer what a test wants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from tests.kit import Done, HomeDir, cru

from cru.core.plugins.executables.executable import HOOKS

ERAS = ("env", "stdin")
PROGRAM = """\
#!/bin/sh
if [ "$1" = --schema ]; then
cat <<'END'
{schema}
END
exit 0
fi
payload={payload}
printf '%s\\t%s\\t%s\\n' '{name}' "$CHIBI_HOOK" "$payload" >> "$HOME/heard"
case "$CHIBI_HOOK" in
{cases}
esac
"""
PAYLOAD = {"env": '"$CHIBI_HOOK_DATA"', "stdin": '"$(cat)"'}


class Heard(NamedTuple):
    plugin: str
    hook: str
    payload: dict[str, Any]


def model(home: HomeDir, script: str, config: str = "", mode: str = "trust") -> None:
    path = home.path / "model.txt"
    path.write_text(script)
    home.configure(f'model = "scripted:{path}"\nmode = "{mode}"\n{config}')


def plugin(
    home: HomeDir,
    answers: Mapping[str, Any] | None = None,
    *,
    name: str = "spy",
    hooks: Sequence[str] = (),
    era: str = "stdin",
    tools: Sequence[Mapping[str, Any]] = (),
) -> Path:
    """A plugin that registered what it answers, and `hooks`. An answer that is a text is shell; anything else is printed as JSON."""
    answers = answers or {}
    one = {"name": name, "description": "listens", "hooks": [*answers, *hooks]}
    cases = "\n".join(f"{hook}) {_shell(answer)} ;;" for hook, answer in answers.items())
    schema = msgspec.json.encode(list(tools) or one).decode()
    path = home.cru / "plugins" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PROGRAM.format(schema=schema, payload=PAYLOAD[era], name=name, cases=cases))
    path.chmod(0o755)
    return path


def spy(home: HomeDir, era: str = "stdin", **answers: Any) -> Path:
    """A plugin that registered everything."""
    return plugin(home, answers, hooks=[name for name in HOOKS if name not in answers], era=era)


def _shell(answer: Any) -> str:
    if isinstance(answer, str):
        return answer
    text = msgspec.json.encode(answer).decode().replace("'", "'\\''")
    return f"printf %s '{text}'"


def heard(home: HomeDir) -> list[Heard]:
    path = home.path / "heard"
    lines = path.read_text().splitlines() if path.exists() else []
    found = [line.split("\t", 2) for line in lines]
    return [Heard(name, hook, msgspec.json.decode(payload)) for name, hook, payload in found]


def payload(home: HomeDir, hook: str) -> dict[str, Any]:
    """What the one call of this hook was given."""
    (one,) = [one.payload for one in heard(home) if one.hook == hook]
    return one


def ask(home: HomeDir, *argv: str, code: int = 0, **more: Any) -> Done:
    run = cru(*(argv or ("hello",)), home=home, **more)
    assert run.code == code and "Traceback" not in run.err, run
    return run


def results(home: HomeDir, context: str = "default") -> list[str]:
    """What the model read of its calls."""
    return [entry["content"] for entry in home.log(context) if entry["entry_type"] == "tool_result"]
