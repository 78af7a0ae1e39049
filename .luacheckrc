std = "luajit"
max_line_length = 120
files["lua"] = { read_globals = { "kube", "log" } }
files["examples"] = { read_globals = { "kube", "log" } }
files["spec"] = { std = "+busted" }
files["examples/**/*_spec.lua"] = { std = "+busted" }
files["spec/support/random_script.lua"] = { read_globals = { "kube", "log" } }
-- Declarations for editors and for scripts/docs; no code.
files["lua/kube/_meta"] = { globals = { "kube" }, ignore = { "212", "241" } }
