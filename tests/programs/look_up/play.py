"""A wiki in a few lines, whose first answer to every reader is that it is busy."""

from __future__ import annotations

from tests.kit import Call, Raw, Received, Reply
from tests.programs.stage import Stage

STEPS = [
    ("create", "sea", "blue"), ("read", "sea", ""), ("amend", "sea", "-green"), ("size", "sea", ""), ("replace", "sea", "grey"),
    ("read", "sea", ""), ("remove", "sea", ""), ("read", "sea", ""),
]  # fmt: skip
CALLS = [Call("wiki", {"action": a, "page": p, **({"text": t} if t else {})}) for a, p, t in STEPS]


def answer(code: int, body: str = "", size: int = 0) -> Raw:
    head = f"HTTP/1.1 {code} Whatever\r\nx-size: {size}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    return Raw((head + body).encode())


class Wiki:
    def __init__(self) -> None:
        self.pages: dict[str, str] = {}
        self.reads = 0

    def __call__(self, request: Received) -> Reply | Raw:
        if request.path.endswith("/chat/completions"):
            done = [m for m in request.body["messages"] if m["role"] == "tool"]
            return Reply(calls=[CALLS[len(done)]]) if len(done) < len(CALLS) else Reply("I know enough.")
        page, text = request.path.rpartition("/")[2], request.raw.decode()
        if request.method == "GET":
            self.reads += 1
            if self.reads == 1:
                return answer(503)
        elif request.method == "DELETE":
            return answer(204 if self.pages.pop(page, None) else 404)
        elif request.method != "HEAD":
            self.pages[page] = (self.pages[page] if request.method == "PATCH" else "") + text
            return answer(201 if request.method == "POST" else 200)
        if page not in self.pages:
            return answer(404)
        return answer(200, "" if request.method == "HEAD" else self.pages[page], len(self.pages[page]))


def play(stage: Stage) -> None:
    wiki = Wiki()
    turn = stage.turn(wiki, own='url = "{url}/wiki"')
    assert turn.done.out == "I know enough.\n"
    assert turn.results == ["201", "blue", "200", "10", "200", "grey", "204", "read sea: 404"]
    assert [r.headers["accept"] for r in turn.requests if r.method == "GET"] == ["text/plain"] * wiki.reads
    assert wiki.reads == 4
