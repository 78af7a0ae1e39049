# Reads the "name value" files of scripts/bench, takes medians and prints the table. Exits 1 when a
# target is missed.

FNR == 1 { n = split(FILENAME, part, "/"); file = part[n] }
{ values[file, $1] = values[file, $1] " " $2 }

function median(file, name) { return median_of(values[file, name]) }

function number(x) {
  if (x == "") return "-"
  if (x >= 10000) return sprintf("%.0f", x)
  return sprintf(x >= 100 ? "%.0f" : x >= 10 ? "%.1f" : "%.3f", x)
}

function head(title) {
  printf "\n%-38s %10s %-6s %10s %7s  %-12s\n", title, "measured", "", "floor", "ratio", "target"
}

# A row; limit "" means no target. what: "<=" or ">=" the limit, "x" a ratio to the floor.
function row(label, value, unit, base, what, limit,    ratio, verdict, target) {
  ratio = base != "" && base > 0 ? sprintf("%.2f", value / base) : "-"
  if (limit != "") {
    target = what == "x" ? "<= " limit "x" : what " " limit
    if (what == "x") verdict = value <= limit * base
    else verdict = what == "<=" ? value <= limit : value >= limit
    if (!verdict) missed++
    verdict = verdict ? "ok" : "MISSED"
  }
  printf "  %-36s %10s %-6s %10s %7s  %-10s %s\n", label, number(value), unit, number(base), ratio, \
    target, verdict
}

function pods(kind, count,    f, idle, avg, wall, cpu, steady, peak, per, storm, floor_cpu) {
  f = kind "-" count
  avg = median(f, "bytes") / count
  idle = median("start", "idle.end.rss")
  wall = median(f, "synced.wall") - median("start", "ready.wall")
  cpu = (median(f, "synced.cpu") - median("start", "ready.cpu")) / count * 1e6
  steady = median(f, "steady.rss")
  peak = median(f, "synced.peak")
  per = (steady - idle) * 1024 / count
  bytes_per[f] = per
  cpu_per[f] = cpu
  head(count " " kind " pods of " int(avg) " B")
  printf "  floors, us a pod: memcpy %.2f, socket %.2f, TLS %.2f\n", \
    median(f, "memcpy.wall") / count * 1e6, median(f, "tcp.wall") / count * 1e6, median(f, "tls.wall") / count * 1e6
  row("sync", wall, "s", median(f, "tls.wall"), "x", 2)
  row("sync", count / wall, "pods/s", count / median(f, "tls.wall"))
  floor_cpu = median(f, "tls.cpu") / count * 1e6
  row("sync, CPU a pod", cpu, "us", floor_cpu, "<=", 25)
  if (cpu > 25) hint = 1
  row("steady RSS", steady / 1024, "MB", idle / 1024)
  row("RSS a pod", per, "B", avg, "<=", kind == "simple" ? 1229 : 2048)
  row("peak RSS / steady RSS", peak / (steady > 0 ? steady : 1), "", "", "<=", 1.2)
  storm = median(f, "storm_delivered") / median(f, "storm_seconds")
  row("events to a handler", storm, "/s", events / median(f, "watch.wall"), ">=", 50000)
  row("CPU an event", (median(f, "stormed.cpu") - median(f, "storm.cpu")) / events * 1e6, "us", \
    median(f, "watch.cpu") / events * 1e6)
  if (median(f, "storm_coalesced") > 0) row("events coalesced", median(f, "storm_coalesced"), "")
  row("event to handler, p50", median(f, "p50_us"), "us", median(f, "rated.p50_us"))
  row("event to handler, p99", median(f, "p99_us"), "us", median(f, "rated.p99_us"))
  row("lister get, warm", median(f, "get_warm_us"), "us", "", "<=", 0.5)
  row("lister get, cold, one field", median(f, "get_cold_us"), "us", median(f, "memcpy.pod_us"), \
    "<=", 4)
  row("lister list, an object", median(f, "list_us"), "us", median(f, "memcpy.pod_us"))
}

function growth(kind, small, large) {
  row(kind ", CPU a pod", cpu_per[kind "-" large] / cpu_per[kind "-" small], "", "", "<=", 1.15)
  row(kind ", RSS a pod", bytes_per[kind "-" large] / bytes_per[kind "-" small], "", "", "<=", 1.15)
}

END {
  head("start")
  row("exec to synced", median("start", "ready.wall") * 1000, "ms", \
    median("start", "floor.ready.wall") * 1000, "<=", 15)
  row("CPU of that", median("start", "ready.cpu") * 1000, "ms", \
    median("start", "floor.ready.cpu") * 1000)
  row("idle RSS", median("start", "idle.end.rss") / 1024, "MB", \
    median("start", "floor.ready.rss") / 1024)
  count = split(sizes, size, " ")
  for (i = 1; i <= count; i++) pods("simple", size[i])
  for (i = 1; i <= count; i++) pods("diverse", size[i])
  if (count > 1) {
    head(size[count] " pods against " size[1])
    growth("simple", size[1], size[count])
    growth("diverse", size[1], size[count])
  }
  if (hint) {
    print "\nWhere the CPU time of a sync goes: start spec/bench/fixture_server, then"
    print "  perf record -e cpu-clock -g \\"
    print "    build/release/moonwatch run spec/bench/start.lua --kubeconfig FILE"
  }
  print (missed > 0 ? "\n" missed " targets missed" : "\nall targets met")
  exit missed > 0
}
