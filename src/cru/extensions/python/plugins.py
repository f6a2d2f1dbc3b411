"""Plugins in Python: a file or a package, executed afresh for each session under a private name."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

from cru.events.errors import EventError
from cru.extensions.discover import Found
from cru.extensions.errors import PluginFailed
from cru.namespace.host import Host, Plugin, call, invoke

PRIVATE = "cru_plugin_{name}"


class PythonPlugins:
    """Runs Python plugins. A top-level `setup(cru)` is called once a session with the package itself, which has every name."""

    def plugin(self, found: Found, config: Mapping[str, Any]) -> Plugin:
        return Plugin(found.name, found.folder, "python", config, invoke, _where)

    async def load(self, found: Found, host: Host) -> None:
        """Raises PluginFailed, whatever the plugin's code raised."""
        import cru

        file = found.files[0]
        name = PRIVATE.format(name=found.name)
        is_package = file.name == "__init__.py"
        spec = spec_from_file_location(
            name, file, submodule_search_locations=[str(file.parent)] if is_package else None
        )
        assert spec is not None and spec.loader is not None
        for old in [m for m in sys.modules if m == name or m.startswith(f"{name}.")]:
            del sys.modules[old]
        module = module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
            if callable(getattr(module, "setup", None)):
                await call(module.setup, cru)
        except EventError as error:
            raise PluginFailed(error.message, error.hint) from error
        except (Exception, SystemExit) as error:  # the boundary around a plugin's code: reported with its place
            raise PluginFailed(f"{_place(error, module)}: {type(error).__name__}: {error}") from error


def _place(error: BaseException, module: ModuleType) -> str:
    """The last line of the plugin itself on the way to the error."""
    place, trace = str(module.__file__), error.__traceback__
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == module.__file__:
            place = f"{module.__file__}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _where(function: Any) -> str:
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""
