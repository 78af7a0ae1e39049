# Reads the "name value" lines of spec/bench/sandbox_load.c, takes medians and prints the table of
# scripts/bench sandbox. Exits 1 when a target is missed.

{ values[$1] = values[$1] " " $2 }

function median(name) { return median_of(values[name]) }

function verdict(value, limit) {
  if (limit == "") return ""
  if (value > limit) missed++
  return sprintf("<= %-6s %s", limit, value <= limit ? "ok" : "MISSED")
}

function row(label, value, unit, limit) {
  printf "  %-34s %10.1f %-8s %s\n", label, value, unit, verdict(value, limit)
}

# A rate, and what of the two processors' time it took: the sandbox's per operation, the load's share.
function rate(label, name,    r) {
  r = median(name)
  printf "  %-34s %10.0f /s %10.1f us %9.0f %%\n", label, r, median(name ".server") / r * 1e6, \
    median(name ".client") * 100
  if (median(name ".client") > 0.8) hint = 1
}

END {
  print "\nstart and memory"
  row("exec to ready", median("start.wall") * 1000, "ms", 50)
  row("CPU of that", median("start.cpu") * 1000, "ms")
  row("idle RSS", median("idle.rss") / 1024, "MB", 30)
  row("RSS with " objects " objects", median("full.rss") / 1024, "MB")
  row("RSS at the end", median("end.rss") / 1024, "MB")
  row("list of " objects " objects", median("list.wall") * 1000, "ms")
  row("its size", median("list.bytes") / 1e6, "MB")
  printf "\n%-36s %13s %13s %11s\n", "with " objects " objects", "rate", "its CPU", "load's CPU"
  count = split("create update merge apply delete", verbs, " ")
  for (i = 1; i <= count; i++) rate(verbs[i] ", 1 connection", verbs[i] "1")
  for (i = 1; i <= count; i++) rate(verbs[i] ", 50 connections", verbs[i] "50")
  rate("events to 1 watcher", "watch1")
  rate("events to 50 watchers", "watch50")
  print "\nno event was lost, repeated or out of order"
  if (hint) print "the load generator had no time to spare: the sandbox may be faster than this"
  print (missed > 0 ? missed " targets missed" : "all targets met")
  exit missed > 0
}
