"""Keeps an eye on the session: a pulse, a list of what went wrong, one line of status, and a last note at the end."""

from cru import (
    clear_status,
    emitter,
    errors,
    fs,
    health,
    log,
    messages,
    notify,
    notify_once,
    off,
    on,
    on_session_end,
    on_session_start,
    once,
    publish,
    schedule,
    service,
    set_status,
    spawn,
    statusline,
    timer,
    toast,
)

memory = {"beats": 0, "ticks": 0, "ticking": 0, "first": 0}
parts = emitter.new()


async def beat(config):
    shared = emitter.global_()
    shared.on("pulse", lambda n: memory.update(beats=n))
    count = 0
    while True:
        count += 1
        await shared.emit("pulse", count)
        await timer.sleep(config["every"])


def tick():
    memory["ticks"] += 1
    log("info", f"tick {memory['ticks']}")


def tool_called(ctx, event):
    notify("tools are used", log.levels["WARN"])
    if notify_once("be careful") and not notify_once("be careful"):
        off(memory["first"])


async def started(session):
    messages.show()
    messages.toggle()
    messages.hide()
    messages.clear()
    await memory["pulse"]["fn"]()
    memory["ticking"] = schedule({"every": 0.005}, lambda: parts.emit("tick"))
    set_status({"key": "monitor", "text": "watching", "progress": 0.5})
    statusline.set(None, "pulse", "on")
    publish("targets", [session.workspace])


async def wait_for(enough):
    for _ in range(2000):
        if enough():
            return
        await timer.sleep(0.002)


def unlucky():
    raise RuntimeError("no such luck")


async def how_is_it(args):
    await wait_for(lambda: memory["beats"] > 2 and memory["ticks"] > 1)
    spawn(unlucky)
    await wait_for(lambda: errors.recent())
    status = await service.status("pulse")
    health.start("session")
    if status["running"] and status["healthy"]:
        health.ok("the pulse beats")
    health.info(f"{len(await service.list())} service")
    health.warn("no such luck" if "no such luck" in errors.recent(1)[0]["error"] else "?", "try again")
    health.error("only a test")
    report = health.get_results()
    lines = [f"{check['level']} {check['msg']}" for check in report["checks"]]
    return "\n".join([f"{report['name']} {str(report['healthy']).lower()}", *lines])


async def complete(ctx, event):
    ended = schedule.cancel(memory["ticking"]), await service.stop("pulse")
    toast(f"ticking {str(ended[0]).lower()}, pulse {str(ended[1]).lower()}")
    clear_status({"key": "monitor"})
    statusline.clear(None, "pulse")


def setup(cru):
    parts.on("tick", tick)
    memory["pulse"] = service.define(
        {
            "name": "pulse",
            "desc": "beats while the session is open",
            "config": {"every": {"default": 0.005}},
            "start": beat,
            "stop": lambda: toast("the pulse stops"),
            "health": lambda: memory["beats"] > 0,
        }
    )
    memory["first"] = on("tool:called", lambda ctx, event: toast("a tool runs"))
    once("tool:called", tool_called)
    on_session_start(started)
    on("turn:complete", complete)
    on_session_end(lambda info: fs.write("end.txt", f"{info['reason']} {str(memory['beats'] > 2).lower()}"))


TOOLS = {"how_is_it": {"desc": "How the session does.", "fn": how_is_it}}
