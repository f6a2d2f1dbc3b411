"""`-m` and `-M`: another model for a context, checked as far as that goes without asking it anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cru.faces.cli.console import say
from cru.faces.cli.event_loop import run_async
from cru.faces.cli.flags import UsageProblem
from cru.faces.cli.run_options import start_of

if TYPE_CHECKING:
    from cru.app import Start
    from cru.faces.cli.operations.flag_run import FlagRun


def set_current(run: FlagRun, model: str) -> None:
    from cru.events.payloads import ConfigChanged

    _set(run, run.name, model, "cru -m")
    run.events.append(ConfigChanged("model", model))
    run.say(f"model {model} saved for {run.name}")


def set_other(run: FlagRun, name: str, model: str) -> None:
    context = run.store(name).name
    _set(run, context, model, "cru -M")
    run.show(f"Model of {context} set to {model}")


def _set(run: FlagRun, context: str, model: str, command: str) -> None:
    """Check it, then keep it in the context's local.toml. Raises NoModel, NoSuchModel, ContextHeld and ConfigError."""
    from cru.config.edit import set_value

    if not model.strip():
        raise UsageProblem("a model needs a name", "cru -m PROVIDER:MODEL")
    run_async(_check(start_of(run.parsed, context), model))
    store = run.home.open(context)
    with store.lock(command):
        set_value(store.folder / "local.toml", "model", model)


async def _check(start: Start, model: str) -> None:
    """As /model does. Raises NoModel, NoSuchModel."""
    from cru.app import load_settings
    from cru.commands.model import check_model
    from cru.engine.model_pool import ModelPool
    from cru.events.bus import Bus
    from cru.events.stamp import Origin
    from cru.events.stream import Notice
    from cru.models import ModelSettings

    bus = Bus(Origin("", ""))
    bus.stream.subscribe(lambda item: say(f"cru: {item.payload.text}"), Notice)
    models = ModelPool(bus, load_settings(start)[0].of(ModelSettings), start.env, start.home / "models")
    try:
        await check_model(model, models)
    finally:
        await models.close()
