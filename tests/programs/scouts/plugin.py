"""Scouts: two agents look at the same time; the first answer counts, and the other one is called back."""

import asyncio

from cru import background


async def scouts(args):
    answer = asyncio.get_running_loop().create_future()

    async def done(result):
        answer.set_result(result["output"])

    async def ignored(result):
        pass

    await background.spawn({"agent": "explore", "prompt": "fast: " + args["question"], "on_complete": done})
    slow, _ = await background.spawn(
        {"agent": "explore", "prompt": "slow: " + args["question"], "on_complete": ignored}
    )
    found = await answer
    called_back = await background.cancel(slow)
    sent = background.list()
    return f"{found}; {len(sent)} sent, {background.get(slow)['status']} {str(called_back).lower()}"


TOOLS = {"scouts": {"desc": "Send scouts out.", "params": [{"name": "question", "type": "string"}], "fn": scouts}}
