# For the tables of scripts/bench: the median and the least of numbers in a text.
function median_of(text,    v, n, i, j, t) {
  n = split(text, v, " ")
  for (i = 2; i <= n; i++) {
    t = v[i] + 0
    for (j = i - 1; j > 0 && v[j] + 0 > t; j--) v[j + 1] = v[j]
    v[j + 1] = t
  }
  return n > 0 ? v[int((n + 1) / 2)] + 0 : 0
}

function least_of(text,    v, n, i, least) {
  n = split(text, v, " ")
  for (i = 1; i <= n; i++) if (i == 1 || v[i] + 0 < least) least = v[i] + 0
  return least + 0
}
