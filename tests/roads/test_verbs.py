"""What a dialect may do at each gate, through the real command: rewrite, allow, ask, add context, inject, answer.

One row a case: the rule, the model's call, the flags, and where the effect must be seen: in what the model was sent last
("sent"), in the log ("log"), or on the way ("file": the command really ran).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import Struct
from tests.kit import Call, Received, Reply, cru, home, server

LAUNCHER = Path(__file__).with_name("cru_with_toy.py")
TOUCH = Call("bash", {"command": "touch done.txt"})
MANY = Call("bash", {"command": "seq 1 9000"})
MAIL = Call("send_message", {"to": "other", "content": "hi"})


class Case(Struct, frozen=True):
    rule: str
    sent: str = ""
    not_sent: str = ""
    call: Call | None = None
    flags: tuple[str, ...] = ("-t",)
    file: bool | None = None
    config: str = ""
    times: int = 1
    code: int = 0


CASES = [
    Case('rewrite message:received content "better words"', sent="better words", not_sent="original words"),
    Case("context message:received: remember the milk", sent="original words\\n\\nremember the milk"),
    Case("inject message:received: first of all", sent="first of all\\n\\noriginal words"),
    Case("context message:before_send: late news", sent="original words\\n\\nlate news"),
    Case("inject message:before_send: first of all", sent="first of all\\n\\noriginal words"),
    Case('rewrite message:before_send prompt "better words"', sent="better words", not_sent="original words"),
    Case('rewrite message:before_send parameters {"temperature": 0.5}', sent='"temperature":0.5'),
    Case('rewrite tool:before_call args {"command": "echo changed"}', call=TOUCH, sent='"content":"changed"', file=False),
    Case('rewrite tool:before_call args {"comand": "x"}', call=TOUCH, sent="bad arguments for bash", file=False),
    Case("answer tool:before_call bash: from the cache", call=TOUCH, sent='"content":"from the cache"', file=False),
    Case("allow tool:before_call bash: fine", call=TOUCH, flags=(), file=True, sent="(no output)"),
    Case("ask tool:before_call bash: a person decides", call=TOUCH, file=False, sent="a person decides"),
    Case("context tool:before_call bash: mind the gap", call=TOUCH, file=True, sent="(no output)\\nmind the gap"),
    Case("inject tool:before_call bash: and now this", call=TOUCH, file=True, sent='"role":"user","content":"and now this"'),
    Case("allow permission:requested bash: fine", call=TOUCH, flags=(), file=True, sent="(no output)"),
    Case("context permission:requested bash: asked you", call=TOUCH, flags=(), file=False, sent="asked you"),
    Case('rewrite tool:completed result "all is well"', call=TOUCH, file=True, sent='"content":"all is well"'),
    Case('rewrite output:cached summary "nine thousand numbers"', call=MANY, sent="nine thousand numbers"),
    Case("answer output:cached: numbers, many", call=MANY, sent="numbers, many"),
    Case("answer inbox:sending: by pigeon", call=MAIL, sent="Message sent to other by toy"),
    Case("inject turn:complete: once more", sent='"role":"user","content":"once more"', config="max_continuations = 1\n", code=3),
    Case(
        "answer context:overflow: it was about words", call=Call("ls", {}), times=6, sent="it was about words",
        config="context_window_limit = 100\nauto_compact = true\nauto_compact_threshold = 1.0\n",
    ),
]  # fmt: skip


@pytest.mark.sample(6)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_verb_has_its_effect_through_the_real_command(tmp_path: Path, case: Case) -> None:
    asked = 0

    def rule(request: Received) -> Reply:
        nonlocal asked
        asked += 1
        return Reply(calls=[case.call]) if case.call and asked <= case.times else Reply("done")

    with server(rule) as model:
        here = home(tmp_path, config=case.config, url=model.url)
        rules = here.path / "rules.toy"
        rules.write_text(case.rule + "\n")
        done = cru(str(rules), *case.flags, "original words", home=here, script=LAUNCHER)
    assert done.code == case.code, done
    last = model.requests[-1].raw.decode()
    assert case.sent in last
    assert not case.not_sent or case.not_sent not in last
    if case.file is not None:
        assert (here.project / "done.txt").exists() is case.file
