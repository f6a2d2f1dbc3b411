"""A wiki over HTTP: read, write and remove pages. The address stands in [plugins.look_up] url."""

from cru import config, http, ratelimit, retry, timer

bucket = ratelimit.new({"capacity": 8, "interval": 0.01})


class Failed(Exception):
    after = 0


async def sent(send, page, opts):
    await bucket.acquire()

    async def attempt():
        answer = await send(config.get("look_up.url") + "/" + page, opts)
        if not answer["ok"]:
            raise Failed(answer["status"])
        return answer

    again = {"max_retries": 3, "base_delay": 0, "jitter": False, "retryable": lambda status: int(status) >= 500}
    return await retry(attempt, again)


async def head(url, _):
    return await http.request({"url": url, "method": "HEAD"})


async def act(action, page, text):
    if action == "read":
        return (await sent(http.get, page, {"headers": {"accept": "text/plain"}}))["body"]
    if action == "size":
        return (await sent(head, page, None))["headers"]["x-size"]
    if action == "create":
        answer = await sent(http.post, page, {"body": text})
    elif action == "replace":
        answer = await sent(http.put, page, {"body": text})
    elif action == "amend":
        answer = await sent(http.patch, page, {"body": text})
    else:
        answer = await sent(http.delete, page, None)
    return str(answer["status"])


async def wiki(args):
    began = timer.clock()

    async def work():
        try:
            return await act(args["action"], args["page"], args.get("text"))
        except Failed as error:
            return f"{args['action']} {args['page']}: {error}"

    in_time, found = await timer.timeout(5, work)
    await timer.sleep(0.001)
    if timer.clock() - began < 0.001:
        raise RuntimeError("the clock stands still")
    return found if in_time else "too slow"


TOOLS = {
    "wiki": {
        "desc": "Look into the wiki, or change it.",
        "params": [
            {"name": "action", "type": "string", "desc": "read, create, replace, amend, remove or size"},
            {"name": "page", "type": "string"},
            {"name": "text", "type": "string", "optional": True},
        ],
        "fn": wiki,
    }
}
