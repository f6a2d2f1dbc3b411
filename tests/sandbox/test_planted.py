"""What must not appear is put aside, whatever it is made of, and when nobody was there to do it at the end."""

from __future__ import annotations

from tests.kit import Call, Reply, cru, server
from tests.sandbox.conftest import Surroundings
from tests.sandbox.test_escapes import needs_sandbox

DEEP = "python3 -c \"import os; [(os.mkdir(n), os.chdir(n)) for n in ['.husky', *['a'] * 950]]\""


@needs_sandbox
def test_what_is_deep_does_not_keep_the_rest_from_being_put_aside(surroundings: Surroundings) -> None:
    """Since cru itself has written something, what is found is compared with that."""
    here = surroundings.here
    write = Call("write", {"file_path": ".idea/a/b.xml", "content": "good\n"})
    plant = Call("bash", {"command": f"{DEEP}; echo x > .envrc; mkdir .vscode; mkfifo .vscode/tasks.json"})
    with server([Reply(calls=[write]), Reply(calls=[plant]), Reply("done")]) as model:
        here.configure(url=model.url)
        done = cru("-t", "--sandbox", "-C", "c", "go", home=here)
    assert done.code == 0, done.err
    results = [str(entry["content"]) for entry in here.log("c") if entry["entry_type"] == "tool_result"]
    assert "failed" not in results[1] and "was put aside, as" in results[1]
    for name in (".husky", ".envrc", ".vscode"):
        assert not (here.project / name).exists() and (here.project / f"{name}.from-sandbox").exists()
    assert (here.project / ".idea" / "a" / "b.xml").read_text() == "good\n"
