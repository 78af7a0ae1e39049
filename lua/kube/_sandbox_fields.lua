-- What the calls of /sandbox/v1 take, name by name with its type: the server and what scripts call
-- agree by this. lua/kube/sandbox/faults.lua and requests.lua say what each means.
return {
  fault = {
    verb = "string", group = "string", resource = "string", subresource = "string", namespace = "string",
    name = "string", nth = "number", count = "number", status = "number", reason = "string", message = "string",
    retry_after = "number", delay = "number", cut = "boolean", expired = "boolean", event_delay = "number",
    cut_after = "number",
  },
  requests = {
    verb = "string", group = "string", resource = "string", subresource = "string", namespace = "string",
    name = "string", since = "number",
  },
}
