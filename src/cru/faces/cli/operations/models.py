"""`-m` and `-M`: another model for a context, checked as far as that goes without asking it anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cru.faces.cli import start as exits
from cru.faces.cli.flags import UsageProblem
from cru.faces.cli.place import start_of
from cru.faces.cli.terminal import say

if TYPE_CHECKING:
    from cru.app import Start
    from cru.faces.cli.operations import Operations
    from cru.models.registry import Choice

# Servers of this machine that say which models they have; the others take names that they do not list.
LISTING = ("ollama", "lmstudio")


def set_current(do: Operations, model: str) -> None:
    from cru.events.payloads import ConfigChanged

    _set(do, do.name, model, "cru -m")
    do.events.append(ConfigChanged("model", model))
    do.say(f"model {model} saved for {do.name}")


def set_other(do: Operations, name: str, model: str) -> None:
    context = do.store(name).name
    _set(do, context, model, "cru -M")
    do.show(f"Model of {context} set to {model}")


def _set(do: Operations, context: str, model: str, command: str) -> None:
    """Check it, then keep it in the context's local.toml. Raises NoModel, NoSuchModel, ContextHeld and ConfigError."""
    from cru.config.edit import set_value

    if not model.strip():
        raise UsageProblem("a model needs a name", "cru -m PROVIDER:MODEL")
    exits.on_loop(_check(start_of(do.parsed, context), model))
    store = do.home.open(context)
    with store.lock(command):
        set_value(store.folder / "local.toml", "model", model)


async def _check(start: Start, model: str) -> int:
    from msgspec.structs import replace

    from cru.app import load_settings
    from cru.commands.model import refuse_misspelt
    from cru.models.registry import build, choose
    from cru.models.settings import ModelSettings
    from cru.net.transport import Transport

    known = load_settings(start)[0].of(ModelSettings)
    refuse_misspelt(model, tuple(name for name, about in known.models.items() if about.model))
    settings = replace(known, model=model)
    choice = await choose(settings, start.env, start.home / "models", say)
    transport = Transport()
    try:
        await build(choice, settings, start.env, transport, say=say).close()
    finally:
        await transport.close()
    await _listed(choice)
    return exits.DONE


async def _listed(choice: Choice) -> None:
    """Whether a server of this machine that answers has the model. Raises NoModel."""
    if choice.provider not in LISTING:
        return
    from cru.config.closest import closest
    from cru.models.probe import probe
    from cru.models.protocol import NoModel
    from cru.models.providers import PROVIDERS

    found = await probe([PROVIDERS[choice.provider]])
    if found is None or choice.model in found.models or f"{choice.model}:latest" in found.models:
        return
    near = closest(choice.model, found.models)
    hint = f"did you mean {choice.provider}:{near}?" if near else f"it has {', '.join(found.models[:8])}"
    raise NoModel(f"{choice.provider} here has no model {choice.model}", hint)
