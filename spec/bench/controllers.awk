# Reads the "name value" files of scripts/bench controllers, takes medians and prints the table. Exits 1
# when a target is missed.

FNR == 1 { n = split(FILENAME, part, "/"); file = part[n] }
{ values[file, $1] = values[file, $1] " " $2 }

function median(file, name) { return median_of(values[file, name]) }

# A row; limit "" means no target, else value must not be above it.
function row(label, value, unit, base, limit,    verdict, ratio) {
  ratio = base != "" && base > 0 ? sprintf("%.2f", value / base) : "-"
  if (limit != "") {
    verdict = sprintf("<= %-7s %s", limit, value <= limit ? "ok" : "MISSED")
    if (value > limit) missed++
  }
  printf "  %-36s %10.3f %-6s %10s %7s  %s\n", label, value, unit, base == "" ? "-" : sprintf("%.3f", base), ratio, \
    verdict
}

function head(title) {
  printf "\n%-38s %10s %-6s %10s %7s  %-12s\n", title, "CPU", "", "floor", "ratio", "target"
}

# Floor: making the key and calling a function that does nothing with it.
function queue(count,    f, floor) {
  f = "queue-" count
  floor = median(f, "floor_us")
  head("a work queue of " count " keys")
  row("add", median(f, "add_us"), "us", floor, 5)
  row("add of a queued key", median(f, "again_us"), "us", floor, 5)
  row("get and done", median(f, "cycle_us"), "us", floor, 10)
  row("add after a while", median(f, "delay_us"), "us", floor, 5)
  row("add now of a delayed key", median(f, "advance_us"), "us", floor, 5)
  row("bytes a key, as counted", median(f, "bytes"), "B", "", 160)
  # Of a small queue, the rest of the process weighs as much.
  row("bytes a key, resident", (median(f, "full.rss") - median(f, "empty.rss")) * 1024 / count, "B", "", \
    count >= 100000 ? 200 : "")
}

# What a key costs must not grow with their number by more than caches explain; a cost that did would
# be a hundred times as high at a hundred times as many. The floor's growth beside it shows how steady
# this machine is.
function growth(name, label, small, large, limit) {
  row(label, median("queue-" large, name) / median("queue-" small, name), "", \
    name == "bytes" ? "" : median("queue-" large, "floor_us") / median("queue-" small, "floor_us"), limit)
}

# Floor: reading the object and calling a function with it; for keys without one, nothing of that.
function reconciles(count,    f, floor) {
  f = "reconcile-" count
  floor = median(f, "floor_us")
  head(count " keys of an initial list")
  row("no-op reconcile, 1 worker", median(f, "noop_1_us"), "us", floor, 60)
  row("no-op reconcile, 8 workers", median(f, "noop_8_us"), "us", floor, 60)
  row("enqueue by hand", median(f, "enqueue_us"), "us", "", 10)
  row("no-op reconcile without an object", median(f, "gone_us"), "us", "", 60)
  printf "  %-36s %10d /s\n", "a CPU second makes, 1 worker", 1e6 / median(f, "noop_1_us")
  printf "  %-36s %10d /s\n", "a CPU second makes, 8 workers", 1e6 / median(f, "noop_8_us")
}

# All keys are there before the first is reconciled; what one costs must not grow with their number.
function reconcile_growth(name, label, small, large, limit) {
  row(label, median("reconcile-" large, name) / median("reconcile-" small, name), "", \
    median("reconcile-" large, "floor_us") / median("reconcile-" small, "floor_us"), limit)
}

END {
  count = split(sizes, size, " ")
  for (i = 1; i <= count; i++) queue(size[i])
  for (i = 2; i <= count; i++) {
    head(size[i] " keys against " size[1])
    growth("add_us", "add", size[1], size[i], 5)
    growth("cycle_us", "get and done", size[1], size[i], 5)
    growth("delay_us", "add after a while", size[1], size[i], 5)
    growth("bytes", "bytes a key", size[1], size[i], 1.1)
  }
  count = split(pods, size, " ")
  for (i = 1; i <= count; i++) reconciles(size[i])
  for (i = 2; i <= count; i++) {
    head(size[i] " keys against " size[1])
    reconcile_growth("noop_1_us", "no-op reconcile, 1 worker", size[1], size[i], 2)
    reconcile_growth("noop_8_us", "no-op reconcile, 8 workers", size[1], size[i], 2)
    reconcile_growth("gone_us", "no-op reconcile without an object", size[1], size[i], 2)
  }
  head("event to reconcile, " rate " events/s")
  row("p50", median("latency", "p50_us"), "us", median("latency", "floor.p50_us"), 500)
  row("p99", median("latency", "p99_us"), "us", median("latency", "floor.p99_us"), 5000)
  print (missed > 0 ? "\n" missed " targets missed" : "\nall targets met")
  exit missed > 0
}
