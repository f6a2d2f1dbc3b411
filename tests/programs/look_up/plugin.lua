-- A wiki over HTTP: read, write and remove pages. The address stands in [plugins.look_up] url.

local bucket = cru.ratelimit.new({ capacity = 8, interval = 0.01 })

local function failed(page, answer)
  return { page = page, status = answer.status, after = 0, retryable = answer.status >= 500 }
end

local function sent(page, send)
  bucket:acquire()
  return cru.retry(function()
    local answer = send(cru.config.get("look_up.url") .. "/" .. page)
    if not answer.ok then error(failed(page, answer)) end
    return answer
  end, { max_retries = 3, base_delay = 0, jitter = false, retryable = function(err) return err.retryable end })
end

local actions = {
  read = function(page)
    return sent(page, function(url) return cru.http.get(url, { headers = { accept = "text/plain" } }) end).body
  end,
  create = function(page, text)
    return sent(page, function(url) return cru.http.post(url, { body = text }) end).status
  end,
  replace = function(page, text)
    return sent(page, function(url) return cru.http.put(url, { body = text }) end).status
  end,
  amend = function(page, text)
    return sent(page, function(url) return cru.http.patch(url, { body = text }) end).status
  end,
  remove = function(page)
    return sent(page, function(url) return cru.http.delete(url) end).status
  end,
  size = function(page)
    return sent(page, function(url) return cru.http.request({ url = url, method = "HEAD" }) end).headers["x-size"]
  end,
}

--- Look into the wiki, or change it.
-- @tool name="wiki"
-- @param action string read, create, replace, amend, remove or size
-- @param page string The page
-- @param text string? What to write
function wiki(args)
  local began = cru.timer.clock()
  local in_time, found = cru.timer.timeout(5, function()
    local ok, result = pcall(actions[args.action], args.page, args.text)
    if ok then return tostring(result) end
    return args.action .. " " .. result.page .. ": " .. result.status
  end)
  cru.timer.sleep(0.001)
  if cru.timer.clock() - began < 0.001 then error("the clock stands still") end
  return in_time and found or "too slow"
end
