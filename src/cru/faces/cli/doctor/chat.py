"""The probe of what only the chat reads, and says at its start: its theme and its keys."""

from __future__ import annotations

from cru.core.compose.chat_keys import ChatKeys, KeyTable
from cru.core.compose.chat_theme import ThemeTable
from cru.faces.cli.doctor.findings import DoctorFinding, Patient


async def chat(patient: Patient) -> list[DoctorFinding]:
    settings = patient.settings
    if settings is None:
        return [DoctorFinding("chat", "warn", "not looked at: the settings cannot be used")]
    from cru.faces.cli.chat.keys import unknown_keys
    from cru.faces.cli.chat.themes import ThemeError, Themes

    theme = settings.of(ThemeTable).theme if settings.has(ThemeTable) else ThemeTable().theme
    keys = settings.of(KeyTable).keys if settings.has(KeyTable) else ChatKeys()
    themes, findings = Themes(patient.home), []
    try:
        themes.use(theme)
    except ThemeError as error:
        findings.append(DoctorFinding("chat", "warn", error.message, error.hint))
    findings += [DoctorFinding("chat", "warn", text) for text in unknown_keys(keys)]
    return findings or [DoctorFinding("chat", "ok", f"theme {themes.name}; its keys are there")]
