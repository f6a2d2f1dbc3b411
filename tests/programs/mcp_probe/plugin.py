"""What scripts can ask of MCP servers."""

from cru import mcp, on, toast


async def handler(ctx, event):
    toast(",".join(mcp.servers()))
    tools = await mcp.list_tools("small")
    toast(f"{len(tools)} {tools[0]['input_schema']['type']}")
    toast(
        f"{await mcp.has_tool('small', 'echo')}{await mcp.has_tool('small', 'x')}{await mcp.has_tool('x', 'echo')}".lower()
    )
    done = await mcp.call("small", "echo", {"text": "hi"})
    toast(f"{str(done['success']).lower()}{done['content']}")
    done = await mcp.call_json("small", "fail", "{}")
    toast(f"{str(done['success']).lower()}{done['error']}")
    toast((await mcp.call("small", "env", {"name": "HOME"}))["error"])
    toast((await mcp.call_json("small", "echo", "{"))["error"] + (await mcp.call("x", "y"))["error"])


on("turn:complete", handler)
