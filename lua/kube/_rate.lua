-- A bucket of tokens: how many requests per second a client may begin.
local core = require "kube._core"
local errors = require "kube._error"
local options = require "kube._options"
local task = require "kube._task"

local M = {}

---@class kube.RateLimit
---@field qps number requests per second
---@field burst? integer so many at once after a pause; default: twice qps, at least 1

-- Buckets by client; those of clients that are gone go with them. `own` is the bucket of the host's own client, which
-- is nil and kube.client.
local buckets, own, own_client = setmetatable({}, { __mode = "k" }), nil, nil

local function check(what, opts)
  if opts.qps == nil then
    if opts.burst ~= nil then errors.misuse("%s: option 'burst' needs qps", what) end
    return nil
  end
  local burst = opts.burst or math.max(1, math.floor(opts.qps * 2))
  if not (opts.qps > 0 and opts.qps < math.huge) then
    errors.misuse("%s: option 'qps' must be a number above 0, not %s", what, tostring(opts.qps))
  elseif not (burst >= 1 and burst % 1 == 0 and burst < math.huge) then
    errors.misuse("%s: option 'burst' must be a whole number from 1 on, not %s", what, tostring(burst))
  end
  return { qps = opts.qps, burst = burst, tokens = burst, at = core.task.now() }
end

--- Gives a client a bucket, of the options qps and burst; none without them.
---@param what string the name of the function in messages
function M.limit(what, client, opts) buckets[client] = check(what, opts) end

--- Limits the requests of the host's own client: of kube.client, kube.request and all controllers together. Without
--- options there is no limit, which is the default: API servers look after themselves.
---@param opts? kube.RateLimit
function M.rate_limit(opts)
  own = check("kube.rate_limit", options.check("kube.rate_limit", opts, { qps = "number", burst = "number" }))
end

--- Tells which userdata stands for the host's own client.
function M.set_own(client) own_client = client end

-- Takes a token, which may be one that is not there yet; the seconds until it is.
local function take(bucket)
  local now = core.task.now()
  bucket.tokens = math.min(bucket.burst, bucket.tokens + (now - bucket.at) * bucket.qps)
  bucket.at = now
  bucket.tokens = bucket.tokens - 1
  return bucket.tokens < 0 and -bucket.tokens / bucket.qps or 0
end

--- Waits for the turn of a request, unless that comes too late.
---@param client? kube.Client
---@param wire table the request; its timeout shrinks by what was waited
---@return kube.Error? err when its turn would come behind its timeout
function M.wait(client, wire)
  local bucket = own
  if client and client ~= own_client then bucket = buckets[client] end
  if not bucket then return nil end
  local seconds = take(bucket)
  if seconds == 0 then return nil end
  if seconds >= wire.timeout then
    bucket.tokens = bucket.tokens + 1 -- for those who wait longer
    return errors.new("timeout", ("%s %s: its turn does not come in time: the client's limit is %g requests per second")
      :format(wire.method, wire.path, bucket.qps), { retriable = true })
  end
  task.sleep(seconds)
  wire.timeout = wire.timeout - seconds
end

return M
