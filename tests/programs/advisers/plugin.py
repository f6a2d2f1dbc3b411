"""Advisers: a question is talked over with two agents; the second one starts from what the first had heard, without its answer."""

from cru import sessions


async def answer_of(session_id, question):
    parts, _ = await sessions.send_and_collect(session_id, question)
    return " ".join([part["content"] async for part in parts if part["type"] == "text"])


async def bold_answer_of(session_id, question):
    events, _ = sessions.subscribe(session_id)
    await sessions.send_message(session_id, f"{question} Be bold.")
    async for event in events:
        if event["type"] == "message_complete":
            break
    assert sessions.unsubscribe(session_id)[0]
    (task,), _ = await sessions.collect_subagents([session_id], 10)
    assert task["output"] == event["data"]["full_response"]
    return task["output"]


async def consult(args):
    adviser, _ = await sessions.create(agent_card="plan", type="adviser")
    sessions.configure_agent(adviser["id"], temperature=0)
    sessions.inject(adviser["id"], "user", "We build a boat.")
    careful = await answer_of(adviser["id"], args["question"])
    other, _ = sessions.fork(adviser["id"])
    while sessions.can_undo(other["id"])[0]:
        sessions.undo(other["id"])
    undone, _ = sessions.undo_history(other["id"])
    bold = await bold_answer_of(other["id"], args["question"])

    sessions.pause(adviser["id"])
    taken, why = await sessions.send_message(adviser["id"], "And now?")
    assert not taken and "paused" in why
    sessions.resume(adviser["id"])
    was_running, _ = await sessions.cancel(adviser["id"])
    await sessions.end_session(other["id"])

    verdict, _ = await sessions.complete(prompt=f"Which? {careful} {bold}")
    depth, _ = sessions.undo_depth(adviser["id"])
    messages, _ = sessions.messages(other["id"])
    stats, _ = sessions.cache_stats(adviser["id"])
    ended, _ = await sessions.get(other["id"])
    every, _ = await sessions.list()
    return "; ".join([
        verdict, f"{depth} turn", f"{len(messages)} messages", f"{stats['requests']} request", ended["state"], f"{len(every)} sessions",
        str(was_running).lower(), f"{len(undone)} undone",
    ])  # fmt: skip


TOOLS = {
    "consult": {"desc": "Talk a question over.", "params": [{"name": "question", "type": "string"}], "fn": consult}
}
