# Reads the "name value" file of scripts/bench reload, takes medians and prints the table. Exits 1 when a target is
# missed.

{ values[$1] = values[$1] " " $2 }

function median(name) { return median_of(values[name]) }

# limit "" means no target, else value must not be above it.
function row(label, value, unit, limit,    verdict) {
  if (limit != "") {
    verdict = sprintf("<= %-7s %s", limit, value <= limit ? "ok" : "MISSED")
    if (value > limit) missed++
  }
  printf "  %-44s %10.2f %-4s  %s\n", label, value, unit, verdict
}

END {
  if (values["c.active"] == "" || values["lua.active"] == "") { print "no reload was seen"; exit 1 }
  printf "\n%s\n", "reload with " count " pods, index in C (medians)"
  row("save to noticed (with the quiet time)", median("c.detect"), "ms", "")
  row("noticed to active", median("c.stage"), "ms", "")
  row("of that, the turn of the commit", median("c.commit"), "ms", "")
  row("save to active", median("c.active"), "ms", 300)
  row("save to the first reconcile on new code", median("c.first"), "ms", "")
  printf "\n%s\n", "the same with a changed index in Lua"
  row("save to active", median("lua.active"), "ms", "")
  row("longest turn for the revision before", median("lua.turn"), "ms", "")
  printf "\n%s\n", "all of them"
  row("relists", median("relists"), "", 0)
  exit missed > 0
}
