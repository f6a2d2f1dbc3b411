"""Outputs that were too long for the conversation: saved, found again, removed by age and on demand."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from tests.kit import Call, Hang, HomeDir, Received, Reply, Step, cru, server, start

LONG = Reply(calls=[Call("bash", {"command": "seq 2000"})])
CONFIG = 'mode = "trust"\ntool_output_cache_threshold = 500\ntool_cache_preview_chars = 20\n'


def old(home: HomeDir, name: str = "default", days: float = 9) -> Path:
    path = home.context(name) / "tool_cache" / "bash_old.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    then = time.time() - days * 86400
    os.utime(path, (then, then))
    return path


def test_a_long_output_is_a_stub_for_the_model_and_a_file_for_the_rest(home: HomeDir) -> None:
    with server([LONG, Reply("done")]) as model:
        home.configure(CONFIG, url=model.url)
        assert cru("hi", home=home).out == "done\n"
        stub = model.requests[-1].body["messages"][-1]["content"]
    (file,) = (home.context() / "tool_cache").iterdir()
    assert str(file) in stub and "2,000 lines" in stub and "It begins:\n1\n2\n3\n4\n5\n6\n7\n8\n9\n[…" in stub
    assert file.read_text() == "".join(f"{n}\n" for n in range(1, 2001)).rstrip()


@pytest.mark.parametrize(
    ("config", "stays"), [("", False), ("auto_cleanup_cache = false\n", True), ("tool_cache_max_age_days = 9\n", True)]
)
def test_at_the_end_of_a_run_old_outputs_go(home: HomeDir, config: str, stays: bool) -> None:
    file, young = old(home), old(home, "default", 3).with_name("young.txt")
    old(home)
    young.write_text("x")
    with server([Reply("done")]) as model:
        home.configure(config, url=model.url)
        assert cru("hi", home=home).err == ""
    assert (file.exists(), young.exists()) == (stays, True)


def test_an_output_that_cannot_be_removed_is_told_and_ends_nothing(home: HomeDir) -> None:
    if os.getuid() == 0:
        pytest.skip("root may remove everything")
    file = old(home)
    file.parent.chmod(0o500)
    with server([Reply("done")]) as model:
        home.configure(url=model.url)
        run = cru("hi", home=home)
    file.parent.chmod(0o700)
    assert run.out == "done\n" and "stay: Permission denied" in run.err


def test_clearing_one_context_and_another(home: HomeDir) -> None:
    here, there = old(home, days=0), old(home, "there", days=0)
    run = cru("-v", "--clear-cache", home=home)
    assert (run.code, run.out) == (0, "") and "[default: 1 saved output removed]" in run.err
    assert not here.exists() and there.exists()
    assert cru("--clear-cache-for", "there", home=home).out == "there: 1 saved output removed\n"
    assert cru("--clear-cache-for", "there", home=home).out == "there: 0 saved outputs removed\n"
    missing = cru("--clear-cache-for", "thre", home=home)
    assert missing.code == 1 and "did you mean `there`?" in missing.err


def test_clearing_the_previous_context(home: HomeDir) -> None:
    assert cru("--clear-cache-for", "-", home=home).code == 2
    assert cru("-c", "one", home=home).code == 0 and cru("-c", "two", home=home).code == 0
    file = old(home, "one", days=0)
    assert cru("--clear-cache-for", "-", home=home).out == "one: 1 saved output removed\n" and not file.exists()
    assert "* two" in cru("-L", home=home).out


def test_cleaning_all_contexts_goes_by_each_ones_own_age(home: HomeDir) -> None:
    files = [old(home, name) for name in ("a", "b", "c")]
    (home.context("b") / "local.toml").write_text("tool_cache_max_age_days = 30\n")
    (home.context("c") / "local.toml").write_text("broken")
    run = cru("--cleanup-cache", home=home)
    assert run.code == 1 and run.out == "1 saved output removed\n" and "cru: c is not cleaned: " in run.err
    assert [file.exists() for file in files] == [False, True, True]


def test_a_context_in_use_is_not_cleared(home: HomeDir) -> None:
    def hang(request: Received) -> Step:
        return Hang("so far")

    file = old(home, days=0)
    with server(hang) as model:
        home.configure(url=model.url)
        with start("hi", home=home) as run:
            run.wait_for("so far")
            held = cru("--clear-cache", home=home)
            assert held.code == 4 and f"process {run.pid}" in held.err and file.exists()


@pytest.mark.parametrize("key", ["tool_output_cache_threshold", "tool_cache_preview_chars", "tool_cache_max_age_days"])
def test_a_negative_size_or_age_is_refused(home: HomeDir, key: str) -> None:
    home.configure(f"{key} = -1\n")
    run = cru("hi", home=home)
    assert run.code == 1 and f"config.toml:1: `{key}`" in run.err and "negative" in run.err
