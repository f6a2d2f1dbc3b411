"""`cru plugin test` with tests in Python."""

from __future__ import annotations

from tests.kit import HomeDir, cru


def test_tests_in_python_are_run_and_their_failures_have_a_place(home: HomeDir) -> None:
    folder = home.cru / "plugins" / "snake" / "tests"
    folder.mkdir(parents=True)
    (folder / "test_a.py").write_text(
        "import asyncio, sys\ndef test_fine():\n    pass\nasync def test_waits():\n    await asyncio.sleep(0)\n    assert 1 == 2\n"
        "def test_ends():\n    sys.exit(3)\ndef test_fixture(tmp_path):\n    pass\n"
    )
    (folder / "test_b.py").write_text("x = = 1\n")
    run = cru("plugin", "test", "snake", home=home)
    assert run.code == 1 and run.out.endswith("1 passed, 4 failed, 0 pending\n") and "Traceback" not in run.err
    for told in (
        "test_waits",
        "test_a.py:6: AssertionError: assert 1 == 2",
        "test_a.py:8: SystemExit: 3",
        "run it with pytest",
    ):
        assert told in run.out
    assert "test_b.py:1: SyntaxError" in run.out
