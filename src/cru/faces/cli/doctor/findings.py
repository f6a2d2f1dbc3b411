"""What a probe says."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from msgspec import Struct

from cru.core.base.config.layers import Settings
from cru.core.compose.start import Start

FindingLevel = Literal["ok", "warn", "error"]


class DoctorFinding(Struct, frozen=True, omit_defaults=True):
    """One line.

    area: the part of cru that it is about
    advice: how to mend it
    """

    area: str
    level: FindingLevel
    text: str
    advice: str = ""


class Patient(Struct, frozen=True):
    """What probes look at.

    settings: None if they cannot be used
    is_offline: no server is asked
    notices: what the settings have told already
    """

    start: Start
    settings: Settings | None
    is_offline: bool = False
    notices: tuple[str, ...] = ()

    @property
    def home(self) -> Path:
        return self.start.home
