"""Probes of keys and of the model: where a key is from (it is never shown), and whether the model can be asked."""

from __future__ import annotations

from cru.core.base.config.secret import mask_url
from cru.core.compose import secret_variables
from cru.core.events.bus import Bus
from cru.core.events.stamp import Origin
from cru.core.models import ModelSettings
from cru.core.models.listing import KeyRefused, ListUnavailable
from cru.core.models.protocol import ModelError, NoModel
from cru.core.models.providers import COMPATIBLE, KEYED, OWN_KEY, KeyEnvironment, source_of
from cru.core.models.stored_keys import KeysUnusable, StoredKeys
from cru.core.turn.model_pool import ModelPool, with_keys
from cru.faces.cli.console import complain
from cru.faces.cli.doctor.findings import DoctorFinding, Patient


async def keys(patient: Patient) -> list[DoctorFinding]:
    """Where each key is from. A keyring is asked only here."""
    env = with_keys(patient.start.env, patient.home)
    findings = []
    for row in KEYED:
        if env.get(row.key_variable):
            findings.append(DoctorFinding("keys", "ok", f"{row.name}: {source_of(row.key_variable, env)}"))
    if patient.start.env.get(OWN_KEY):
        findings.append(DoctorFinding("keys", "ok", f"of base_url or OpenRouter: {OWN_KEY}"))
    if patient.settings is not None and patient.settings.of(ModelSettings).api_key:
        where = patient.settings.origin("api_key")
        findings.append(DoctorFinding("keys", "ok", f"of base_url or OpenRouter: api_key in {where}"))
    try:
        servers = [name for name in StoredKeys(patient.home).names() if "://" in name]
        findings += [DoctorFinding("keys", "ok", f"{name}: {StoredKeys(patient.home).place(name)}") for name in servers]
    except KeysUnusable as error:
        findings.append(DoctorFinding("keys", "error", error.message, error.hint))
    if isinstance(env, KeyEnvironment) and env.problem and not any(f.level == "error" for f in findings):
        findings.append(
            DoctorFinding("keys", "error", env.problem, "unlock the keyring, or `cru login PROVIDER --file`")
        )
    findings += _withheld(patient)
    if findings:
        return findings
    chosen = patient.settings.of(ModelSettings) if patient.settings is not None else None
    if chosen is not None and (chosen.model or chosen.base_url):
        return [DoctorFinding("keys", "ok", "there is none, and a model of this machine needs none", "cru login")]
    return [DoctorFinding("keys", "warn", "there is none, and no model is configured", "cru login")]


def _withheld(patient: Patient) -> list[DoctorFinding]:
    if patient.settings is None:
        return []
    names = sorted(secret_variables(patient.start, patient.settings, complain).names)
    if not names:
        return []
    text = f"the model's commands do not get {', '.join(names)} (env_pass = [NAME, …] in [tools] of config.toml passes them on)"
    return [DoctorFinding("keys", "ok", text)]


async def model(patient: Patient) -> list[DoctorFinding]:
    if patient.settings is None:
        return [DoctorFinding("model", "warn", "not looked at: the settings cannot be used")]
    pool = ModelPool(
        Bus(Origin("", "")), patient.settings.of(ModelSettings), patient.start.env, patient.home / "models"
    )
    try:
        return [await _reach(pool, patient.is_offline)]
    finally:
        await pool.close()


async def _reach(pool: ModelPool, is_offline: bool) -> DoctorFinding:
    try:
        resolved = await pool.check("")
    except NoModel as error:
        return DoctorFinding("model", "error", error.message, error.hint)
    name = f"{resolved.model.provider}:{resolved.model.name}"
    if "://" not in resolved.base_url:
        return DoctorFinding("model", "ok", f"{name} ({pool.why(resolved)})")
    if is_offline:
        return DoctorFinding("model", "ok", f"{name} at {resolved.base_url}, not asked (--offline)")
    try:
        listed = [row.id for row in await pool.listed(resolved.model.provider)]
    except KeyRefused as error:
        owner = mask_url(resolved.base_url) if resolved.model.provider in COMPATIBLE else resolved.model.provider
        return DoctorFinding("model", "error", f"{name}: {error.message}", f"cru login {owner}")
    except ListUnavailable as error:
        return DoctorFinding(
            "model", "error", f"{name}: {error.message}", "is the server up, and the network? `--offline` does not ask"
        )
    except ModelError as error:
        return DoctorFinding("model", "error", f"{name}: {error.message}", error.hint)
    if listed and resolved.model.name not in listed:
        return DoctorFinding(
            "model",
            "warn",
            f"{name}: the server answers, and lists no such model",
            "`cru models list` shows what there is",
        )
    return DoctorFinding("model", "ok", f"{name} at {resolved.base_url} answers, {len(listed)} models")
