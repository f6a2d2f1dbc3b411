"""A project with a tag and three commits since."""

from __future__ import annotations

import subprocess

from tests.kit import Call, Reply
from tests.programs.stage import Stage

WHO = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
NOTES = "# 1.1\n\n## New\n- ships fly\n- ships swim\n\n## Mended\n- a leak\n\n# 1.0\n\nIt works.\n"


def play(stage: Stage) -> None:
    def git(*argv: str) -> str:
        command = ["git", *WHO, *argv]
        return subprocess.run(
            command, cwd=stage.folder, env=stage.home.env, check=True, capture_output=True, text=True
        ).stdout

    git("init", "-q")
    (stage.folder / "CHANGELOG.md").write_text("# 1.0\n\nIt works.\n")
    git("add", ".")
    git("commit", "-q", "-m", "feat: all of it")
    git("tag", "v1.0")
    for subject in ("feat: ships fly", "fix: a leak", "no kind at all", "feat: ships swim"):
        git("commit", "-q", "--allow-empty", "-m", subject)
    turn = stage.turn([Reply(calls=[Call("release_notes", {"version": "1.1"})]), Reply("released")])
    assert turn.done.out == "released\n"
    [said] = turn.results
    assert said == "3 commits since v1.0..HEAD; files: .git CHANGELOG.md CHANGELOG.md.old"
    assert (stage.folder / "CHANGELOG.md").read_text() == NOTES
    assert git("diff", "--cached", "--name-only") == "CHANGELOG.md\n"
