"""What a plugin in Python can take away from the whole process, as a rule by mistake: it is put back, and told."""

from __future__ import annotations

import sys
import threading
from types import ModuleType


class InterpreterGuard:
    """Remembers the modules that were there before a plugin's code ran, since nothing of cru can be loaded without them."""

    def __init__(self) -> None:
        self._modules: dict[str, ModuleType] = {}
        self.remember()

    def remember(self) -> None:
        self._modules = dict(sys.modules)

    def put_back(self, count: int) -> str:
        """What was taken, in words; "" if nothing was. `count`: how many modules there were before the plugin's code ran."""
        if len(sys.modules) >= count and sys.excepthook is not None and threading.excepthook is not None:
            return ""
        lost = {name: module for name, module in self._modules.items() if name not in sys.modules}
        sys.modules.update(lost)
        texts = [f"{len(lost)} modules out of sys.modules ({next(iter(lost))} …)"] if lost else []
        for owner, name in ((sys, "excepthook"), (threading, "excepthook")):
            if getattr(owner, name) is None:
                setattr(owner, name, getattr(owner, f"__{name}__"))
                texts.append(f"{owner.__name__}.{name} away")
        return f"it took {' and '.join(texts)}" if texts else ""
