"""The model of bench.agents: `python -m bench.agents_server`. It prints its port, and on GET /events what it was asked.

parent-A-R-M  starts A agents in the background (M = background), waits until all of them have asked, and has R rounds of bash; or has A agents work
              one after the other (M = waited)
agent-R-D     R rounds of ls, each answered after D milliseconds; its answer ends with the number that its prompt ends with
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

EVENTS: list[dict[str, Any]] = []
ASKED: set[str] = set()
CHANGED = asyncio.Event()


def chunks(text: str, calls: list[tuple[str, dict[str, Any]]], number: int) -> bytes:
    delta: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        delta["tool_calls"] = [
            {"index": at, "id": f"c{number}_{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
            for at, (name, args) in enumerate(calls)
        ]
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    first = {"choices": [{"index": 0, "delta": delta}]}
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}], "usage": usage}
    return b"".join(b"data: %s\n\n" % json.dumps(part).encode() for part in (first, last)) + b"data: [DONE]\n\n"


async def answer(body: dict[str, Any]) -> bytes:
    kind, *numbers = body["model"].split("-")
    messages = body["messages"]
    results = sum(message["role"] == "tool" for message in messages)
    if kind == "agent":
        return await _agent(messages, results, *map(int, numbers))
    agents, rounds, mode = int(numbers[0]), int(numbers[1]), numbers[2]
    prompt = next(str(message["content"]) for message in messages if message["role"] == "user")
    model = next(word for word in prompt.split() if word.startswith("agent-"))

    def task(number: int, background: bool) -> tuple[str, dict[str, Any]]:
        args = {"agent": "general", "prompt": f"Look around. You are number {number}", "description": f"agent {number}", "model": model}
        return "task", {**args, "background": background}

    if mode == "waited":
        return chunks("", [task(results, False)], results) if results < agents else chunks("DONE", [], results)
    if not results and agents:
        return chunks("", [task(number, True) for number in range(agents)], 0)
    while len(ASKED) < agents:
        CHANGED.clear()
        await CHANGED.wait()
    if results < agents + rounds:
        return chunks("", [("bash", {"command": f"true {results}"})], results)
    return chunks("DONE", [], results)


async def _agent(messages: list[dict[str, Any]], results: int, rounds: int, delay: int) -> bytes:
    number = str(next(message["content"] for message in messages if message["role"] == "user")).split()[-1]
    ASKED.add(number)
    CHANGED.set()
    await asyncio.sleep(delay / 1000)
    if results < rounds:
        return chunks("", [("ls", {"path": "." + "/." * results})], results)
    return chunks(f"answer-{number}.", [], results)


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            first = time.monotonic_ns()
            lines = head.decode("latin-1").split("\r\n")
            fields = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines[1:])}
            data = await reader.readexactly(int(fields.get("content-length", "0")))
            if lines[0].startswith("GET /events"):
                payload, kind = json.dumps(EVENTS).encode(), "application/json"
            else:
                body = json.loads(data)
                payload, kind = await answer(body), "text/event-stream"
                EVENTS.append({"model": body["model"], "first": first, "sent": time.monotonic_ns()})
            writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(payload)}\r\n\r\n".encode() + payload)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass  # the client has gone
    finally:
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=512, limit=1 << 24)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
