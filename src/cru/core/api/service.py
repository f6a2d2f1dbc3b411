"""`cru.service`: long-running work of a plugin, started again when it fails."""

from __future__ import annotations

import asyncio
from asyncio import Task
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from cru.core.api.arguments import function, options, own, table, text, tostring
from cru.core.api.callbacks import Callback, bind_callback, run_in_background
from cru.core.api.host import host
from cru.core.api.timing import retry

_KEYS = ("name", "desc", "start", "stop", "health", "restart", "config")
_RESTART = {"max_retries": 10, "base_delay": 1, "max_delay": 60}


class _Service(Struct):
    name: str
    desc: str
    start: Callback
    stop: Callback | None = None
    health: Callback | None = None
    restart: dict[str, object] = {}
    config: dict[str, object] = {}
    task: Task[Any] | None = None

    @property
    def running(self) -> bool:
        return self.task is not None and not self.task.done()


def define(spec: dict[str, Any]) -> dict[str, Any]:
    """service.define{name, desc, start = fn(config), stop?, health?, restart = {max_retries=10, base_delay=1, max_delay=60}, config =
    {key = {default, secret}}} -> {desc, fn}. fn() starts it beside everything else, again after each error; an error table with
    retryable = false ends that. A key's value comes from CRUCIBLE_NAME_KEY if it is secret, else from [plugins.NAME], else default.

    Example: cru.service.define({name="demo", start=function() end}).desc --> ""
    """
    where = "cru.service.define"
    fields = options(where, spec, _KEYS)
    name = text(where, "name", fields.get("name"))
    service = _Service(
        name,
        tostring(fields.get("desc") or ""),
        bind_callback(function(where, "start", fields.get("start"))).detached(),
        _optional_callback(where, "stop", fields),
        _optional_callback(where, "health", fields),
        {**_RESTART, **table(where, "restart", fields.get("restart"))},
        table(where, "config", fields.get("config")),
    )
    all, owner = _services(), service.start.host
    if name in all:
        own(where, f"the service {name}", all[name].start.host.plugin.name)
    all[name] = service

    async def take_back() -> None:
        for other in [other for other in all.values() if other.start.host.plugin.name == owner.plugin.name]:
            await _stop_service(other)
            del all[other.name]

    owner.own(take_back, "services")
    return {"desc": service.desc, "fn": ServiceStarter(service)}


async def status(name: str) -> dict[str, object] | None:
    """service.status(name) -> {running, healthy, name, desc}, or nil; healthy is nil without a health function, false if it fails.

    Example: cru.service.status("no such service") --> nil
    """
    service = _services().get(text("cru.service.status", "name", name))
    return None if service is None else await _status_of(service)


async def list_() -> list[dict[str, object]]:
    """service.list() -> the status of every service.

    Example: #cru.service.list() --> 0
    """
    return [await _status_of(service) for service in list(_services().values())]


async def stop(name: str) -> bool:
    """service.stop(name) -> true, or false if it was not running. Its stop function is called first. Raises BadArgument if it belongs to
    another plugin.

    Example: cru.service.stop("no such service") --> false
    """
    where = "cru.service.stop"
    service = _services().get(text(where, "name", name))
    if service is None:
        return False
    own(where, f"the service {name}", service.start.host.plugin.name)
    return await _stop_service(service)


async def start_service(name: str, desc: str, work: Callable[..., object]) -> None:
    """Start a service that a plugin's table names: one that `define` made, or a function, which is not started again if it fails."""
    if isinstance(work, ServiceStarter):
        await work()
        return
    start = work if hasattr(work, "detached") else lambda _config: work()  # Lua drops what a function does not take
    await define({"name": name, "desc": desc, "start": start, "restart": {"max_retries": 0}})["fn"]()


class ServiceStarter:
    """The function that `define` gives: true; false if it runs already."""

    def __init__(self, service: _Service) -> None:
        self._service = service

    async def __call__(self, *_: object) -> bool:
        if self._service.running:
            return False
        self._service.task = run_in_background(self._service.start.host, _run, self._service)
        return True


async def _stop_service(service: _Service) -> bool:
    if not service.running or service.task is None:
        return False
    if service.stop is not None:
        await service.stop.guarded(f"stop of service {service.name}")
    service.task.cancel()
    await asyncio.wait([service.task])
    return True


async def _run(service: _Service) -> None:
    values = {str(key): _config_value(service, str(key), spec) for key, spec in service.config.items()}

    async def attempt() -> None:
        await service.start.call(values)

    async def again() -> None:
        await retry(attempt, {**service.restart, "retryable": _retryable})

    await Callback(again, service.start.host).guarded(f"service {service.name}")


def _retryable(error: object) -> bool:
    return not (isinstance(error, dict) and error.get("retryable") is False)


def _config_value(service: _Service, key: str, spec: object) -> object:
    fields = spec if isinstance(spec, dict) else {"default": spec}
    owner = service.start.host
    if fields.get("secret"):
        secret = owner.session.parts.place.env.get(f"CRUCIBLE_{service.name}_{key}".upper().replace("-", "_"))
        if secret:
            return secret
    configured = owner.plugin.config.get(key)
    return fields.get("default") if configured is None else configured


async def _status_of(service: _Service) -> dict[str, object]:
    healthy: bool | None = None
    if service.health is not None:
        healthy = bool(await service.health.guarded(f"health of the service {service.name}"))
    return {"running": service.running, "healthy": healthy, "name": service.name, "desc": service.desc}


def _optional_callback(where: str, name: str, fields: dict[str, object]) -> Callback | None:
    value = fields.get(name)
    return None if value is None else bind_callback(function(where, name, value))


def _services() -> dict[str, _Service]:
    return host().session.family_state("services", dict[str, _Service])
