# Reads the "name value" files of scripts/bench, takes medians and prints the table; of times the best
# run, too. Whatever else the machine and its host do only ever adds time, so that one is the nearest to
# what the program takes; targets and ratios are about the medians. Exits 1 when a target is missed.

FNR == 1 { n = split(FILENAME, part, "/"); file = part[n] }
{ values[file, $1] = values[file, $1] " " $2 }

function median(file, name) { return median_of(values[file, name]) }

# Of times: the table is made twice, first with the least of each.
function time(file, name) { return least ? least_of(values[file, name]) : median(file, name) }

function number(x) {
  if (x == "") return "-"
  if (x >= 10000) return sprintf("%.0f", x)
  return sprintf(x >= 100 ? "%.0f" : x >= 10 ? "%.1f" : "%.3f", x)
}

function head(title) {
  if (least) return
  printf "\n%-38s %10s %10s %-6s %10s %7s  %-12s\n", title, "best", "median", "", "floor", "ratio", "target"
}

# A row; limit "" means no target. what: "<=" or ">=" the limit, "x" a ratio to the floor.
function row(label, value, unit, base, what, limit,    ratio, verdict, target) {
  rows++
  if (least) {
    best[rows] = value
    return
  }
  ratio = base != "" && base > 0 ? sprintf("%.2f", value / base) : "-"
  if (limit != "") {
    target = what == "x" ? "<= " limit "x" : what " " limit
    if (what == "x") verdict = value <= limit * base
    else verdict = what == "<=" ? value <= limit : value >= limit
    if (!verdict) missed++
    verdict = verdict ? "ok" : "MISSED"
  }
  printf "  %-36s %10s %10s %-6s %10s %7s  %-10s %s\n", label, number(best[rows]), number(value), unit, \
    number(base), ratio, target, verdict
}

function pods(kind, count,    f, idle, avg, wall, cpu, steady, peak, per, storm, floor_cpu) {
  f = kind "-" count
  avg = median(f, "bytes") / count
  idle = median("start", "idle.end.rss")
  wall = time(f, "synced.wall") - time("start", "ready.wall")
  cpu = (time(f, "synced.cpu") - time("start", "ready.cpu")) / count * 1e6
  steady = median(f, "steady.rss")
  peak = median(f, "synced.peak")
  per = (steady - idle) * 1024 / count
  bytes_per[f] = per
  cpu_per[f] = cpu
  head(count " " kind " pods of " int(avg) " B")
  if (!least) printf "  floors, us a pod: memcpy %.2f, socket %.2f, TLS %.2f\n", \
    time(f, "memcpy.wall") / count * 1e6, time(f, "tcp.wall") / count * 1e6, time(f, "tls.wall") / count * 1e6
  row("sync", wall, "s", time(f, "tls.wall"), "x", 2)
  row("sync", count / wall, "pods/s", count / time(f, "tls.wall"))
  floor_cpu = time(f, "tls.cpu") / count * 1e6
  row("sync, CPU a pod", cpu, "us", floor_cpu, "<=", 25)
  if (cpu > 25) hint = 1
  row("steady RSS", steady / 1024, "MB", idle / 1024)
  row("RSS a pod", per, "B", avg, "<=", kind == "simple" ? 1229 : 2048)
  row("peak RSS", peak / 1024, "MB", idle / 1024)
  row("peak RSS / steady RSS", peak / (steady > 0 ? steady : 1), "", "", "<=", 1.2)
  storm = median(f, "storm_delivered") / time(f, "storm_seconds")
  row("events to a handler", storm, "/s", events / time(f, "watch.wall"), ">=", 50000)
  row("CPU an event", (time(f, "stormed.cpu") - time(f, "storm.cpu")) / events * 1e6, "us", \
    time(f, "watch.cpu") / events * 1e6)
  if (median(f, "storm_coalesced") > 0) row("events coalesced", median(f, "storm_coalesced"), "")
  row("event to handler, p50", time(f, "p50_us"), "us", time(f, "rated.p50_us"))
  row("event to handler, p99", time(f, "p99_us"), "us", time(f, "rated.p99_us"))
  row("lister get, warm", time(f, "get_warm_us"), "us", time(f, "get_table_us"), "<=", 0.5)
  row("lister get, cold, one field", time(f, "get_cold_us"), "us", time(f, "memcpy.pod_us"), \
    "<=", 4)
  row("lister list, an object", time(f, "list_us"), "us", time(f, "memcpy.pod_us"))
}

# Of a list that is taken again: what changed exists twice until all have been told.
function relists(count,    f) {
  f = "relist-" count
  head("relists of " count " diverse pods")
  row("half changed, peak RSS / steady", median(f, "2.relisted.peak") / median(f, "2.steady.rss"), "", "", "<=", 1.8)
  row("half changed, RSS after / steady", median(f, "2.end.rss") / median(f, "2.steady.rss"), "")
  row("all changed, peak RSS / steady", median(f, "1.relisted.peak") / median(f, "1.steady.rss"), "")
  row("all changed, RSS after / steady", median(f, "1.end.rss") / median(f, "1.steady.rss"), "", "", "<=", \
    count > 10000 ? 1.3 : "")  # fewer are not given back
}

function growth(kind, small, large) {
  row(kind ", CPU a pod", cpu_per[kind "-" large] / cpu_per[kind "-" small], "", "", "<=", 1.15)
  row(kind ", RSS a pod", bytes_per[kind "-" large] / bytes_per[kind "-" small], "", "", "<=", 1.15)
}

function table(    count, size, i) {
  rows = 0
  head("start")
  row("exec to synced", time("start", "ready.wall") * 1000, "ms", \
    time("start", "floor.ready.wall") * 1000, "<=", 15)
  row("CPU of that", time("start", "ready.cpu") * 1000, "ms", time("start", "floor.ready.cpu") * 1000)
  row("idle RSS", median("start", "idle.end.rss") / 1024, "MB", \
    median("start", "floor.ready.rss") / 1024)
  count = split(sizes, size, " ")
  for (i = 1; i <= count; i++) pods("simple", size[i])
  for (i = 1; i <= count; i++) pods("diverse", size[i])
  relists(size[count])
  if (count == 1) return
  head(size[count] " pods against " size[1])
  growth("simple", size[1], size[count])
  growth("diverse", size[1], size[count])
}

END {
  for (least = 1; least >= 0; least--) table()
  if (hint) {
    print "\nWhere the CPU time of a sync goes: start spec/bench/fixture_server, then"
    print "  perf record -e cpu-clock -g \\"
    print "    build/release/moonwatch run spec/bench/start.lua --kubeconfig FILE"
  }
  if (stolen != "") printf "\nThe host gave %.1f %% of the time that programs wanted to others.\n", stolen
  print (missed > 0 ? "\n" missed " targets missed" : "\nall targets met")
  exit missed > 0
}
