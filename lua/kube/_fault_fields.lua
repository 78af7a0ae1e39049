-- What a fault of the sandbox may say, name by name with its type: the server and the call that
-- scripts make agree by this. lua/kube/sandbox/faults.lua says what each means.
return {
  verb = "string", group = "string", resource = "string", namespace = "string", name = "string",
  nth = "number", count = "number", status = "number", reason = "string", message = "string",
  retry_after = "number", delay = "number", cut = "boolean", expired = "boolean", event_delay = "number",
  cut_after = "number",
}
