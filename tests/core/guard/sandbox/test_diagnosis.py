"""What a person is advised where bubblewrap is there and cannot start."""

from __future__ import annotations

from pathlib import Path

import pytest

from cru.core.guard.sandbox.diagnosis import GENERIC, advise

NO_NAMESPACES = "bwrap: No permissions to create a new namespace, likely because the kernel does not allow it."
UID_MAP = "bwrap: setting up uid map: Permission denied"
# the error, files below / and what they hold, and a word of the advice
CASES: dict[str, tuple[str, dict[str, str], str]] = {
    "Debian, switched off": (NO_NAMESPACES, {"proc/sys/kernel/unprivileged_userns_clone": "0\n"}, "unprivileged_userns_clone=1"),
    "Debian, switched on, in Docker": (
        NO_NAMESPACES, {"proc/sys/kernel/unprivileged_userns_clone": "1\n", ".dockerenv": ""}, "seccomp=unconfined",
    ),
    "hardened": (NO_NAMESPACES, {"proc/sys/user/max_user_namespaces": "0\n"}, "max_user_namespaces"),
    "Ubuntu": (UID_MAP, {"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n"}, "apparmor_restrict_unprivileged_userns=0"),
    "Podman": (NO_NAMESPACES, {"run/.containerenv": ""}, "seccomp=unconfined"),
    "masked /proc": ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", {".dockerenv": ""}, "systempaths=unconfined"),
    "used up": ("bwrap: Creating new namespace failed: No space left on device", {}, "in use"),
    "anything else": ("bwrap: something new", {"proc/sys/user/max_user_namespaces": "15000\n"}, GENERIC),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_actual_cause_is_named(tmp_path: Path, name: str) -> None:
    error, files, word = CASES[name]
    for file, text in files.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    assert word in advise(error, tmp_path)


@pytest.mark.parametrize("name", [name for name, (_, files, _) in CASES.items() if files])
def test_no_setting_is_named_that_this_kernel_has_not(tmp_path: Path, name: str) -> None:
    error, files, _ = CASES[name]
    advice = advise(error, tmp_path)
    assert not any(Path(file).name in advice for file in files if file.startswith("proc/"))
