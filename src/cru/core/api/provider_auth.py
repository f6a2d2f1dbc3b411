"""`cru.on_provider_auth`: headers for requests to providers, such as tokens that expire."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cru.core.api.arguments import function
from cru.core.api.callbacks import bind_callback
from cru.core.api.host import NamespaceError, host


def on_provider_auth(work: Callable[..., object]) -> None:
    """on_provider_auth(fn({provider, model}) -> {NAME = value} | {headers = {NAME = value}} | nil). Asked before each request to
    a provider: the headers are added to it, in the place of others of the same name. If fn fails, the request is not made.
    Raises BadArgument.

    Example: cru.on_provider_auth(function(about) return {["x-team"] = "core"} end) --> nil
    """
    where = "cru.on_provider_auth"
    listener = bind_callback(function(where, "fn", work))
    here = host()
    owner = here.plugin.name

    async def headers(provider: str, model: str) -> Mapping[str, str]:
        answered = await listener.call({"provider": provider, "model": model})
        if isinstance(answered, Mapping) and isinstance(answered.get("headers"), Mapping):
            answered = answered["headers"]
        if answered is None:
            return {}
        if not isinstance(answered, Mapping) or not all(
            isinstance(part, str) for pair in answered.items() for part in pair
        ):
            raise NamespaceError(f"{where}: {owner} gave no table of headers", 'return { authorization = "Bearer …" }')
        return {name.lower(): value for name, value in answered.items()}

    listeners = here.session.parts.services.provider_auth
    listeners.append(headers)
    here.own(lambda: listeners.remove(headers))
