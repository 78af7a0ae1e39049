-- Metrics: what is shown is read by a parser that shares no code with the core.
jit.off(true, true)
local unit = require "spec.support.unit"
local exposition = require "spec.support.exposition"
local C, ffi = unit.C, unit.ffi

ffi.cdef [[
  struct spec_metric_work {
    struct mw_metric *counter, *histogram;
    struct mw_series *shared;
    int rounds;
    int failed;
  };
  void spec_metric_work(void *arg);
]]

local TYPES = { counter = C.MW_METRIC_COUNTER, gauge = C.MW_METRIC_GAUGE, histogram = C.MW_METRIC_HISTOGRAM }

local function strings(list)
  return ffi.new("const char *[?]", math.max(#list, 1), list)
end

local alive  -- what the last spec points into

local function spec_of(name, options)
  options = options or {}
  local labels = strings(options.labels or {})
  local buckets = ffi.new("double[?]", math.max(#(options.buckets or {}), 1), options.buckets or {})
  local spec = ffi.new("struct mw_metric_spec", {
    name = name, help = options.help or "A help.", type = TYPES[options.type or "counter"],
    labels = labels, label_count = #(options.labels or {}),
    buckets = buckets, bucket_count = #(options.buckets or {}), series_max = options.max or 0,
  })
  alive = { name, labels, buckets, options.help }
  return spec
end

-- A family; everything handed over is copied by the core.
local function family(name, options)
  local metric = C.mw_metric_family(spec_of(name, options))
  assert(alive)
  return metric
end

local function written(limit)
  local out = ffi.new("struct mw_buf")
  C.mw_buf_init(out, limit or 1e6)
  local rc = C.mw_metric_write(out)
  local text = ffi.string(out.p, out.n)
  C.mw_buf_deinit(out)
  return text, rc
end

local function shown() return exposition.parse((written())) end

describe("metrics", function()
  local held

  local function series(metric, ...)
    local s = C.mw_metric_series(metric, strings { ... })
    held[#held + 1] = s
    return s
  end

  before_each(function() held = {} end)
  after_each(function()
    for _, s in ipairs(held) do C.mw_series_unref(s) end
  end)
  unit.no_leaks()

  it("show counters and gauges with their help, type and labels", function()
    local s = series(family("spec_a_total", { labels = { "name", "code" }, help = "Things done." }), "web", "200")
    C.mw_series_add(s, 1)
    C.mw_series_add(s, 2.5)
    local g = series(family("spec_gauge", { type = "gauge" }))
    C.mw_series_set(g, 7)
    C.mw_series_add(g, -9)
    local families = shown()
    assert.are.equal("counter", families.spec_a_total.type)
    assert.are.equal("Things done.", families.spec_a_total.help)
    assert.are.equal(3.5, exposition.value(families, "spec_a_total", { name = "web", code = "200" }))
    assert.are.equal("gauge", families.spec_gauge.type)
    assert.are.equal(-2, exposition.value(families, "spec_gauge"))
    assert.are.equal(3.5, C.mw_series_value(s))
  end)

  it("show exactly this text", function()
    local h = series(family("spec_seconds",
      { type = "histogram", buckets = { 1e-8, 0.25, 10 }, labels = { "k" } }), "v")
    for _, v in ipairs { 0, 1e-8, 0.2, 0.25, 3, 10, 11 } do C.mw_series_observe(h, v) end
    C.mw_series_observe(h, 0 / 0)
    series(family("spec_zero_total", { help = "A \\ and\na line." }))
    assert.are.equal(table.concat({
      '# HELP spec_seconds A help.',
      '# TYPE spec_seconds histogram',
      'spec_seconds_bucket{k="v",le="1e-08"} 2',
      'spec_seconds_bucket{k="v",le="0.25"} 4',
      'spec_seconds_bucket{k="v",le="10"} 6',
      'spec_seconds_bucket{k="v",le="+Inf"} 7',
      'spec_seconds_sum{k="v"} 24.45000001',
      'spec_seconds_count{k="v"} 7',
      '# HELP spec_zero_total A \\\\ and\\na line.',
      '# TYPE spec_zero_total counter',
      'spec_zero_total 0', '',
    }, "\n"), (written()))
    assert.are.equal("A \\ and\na line.", shown().spec_zero_total.help)
  end)

  it("show numbers so that they read back as the same", function()
    local g = series(family("spec_number", { type = "gauge" }))
    for _, v in ipairs { 0, 1, -1, 0.1, 1 / 3, 1e300, 5e-324, 2 ^ 53, 123456789012, 1731844800.123 } do
      C.mw_series_set(g, v)
      assert.are.equal(v, exposition.value(shown(), "spec_number"))
    end
    for value, text in pairs { [math.huge] = "+Inf", [-math.huge] = "-Inf" } do
      C.mw_series_set(g, value)
      assert.is_truthy(written():find("\nspec_number " .. text .. "\n", 1, true))
    end
    C.mw_series_set(g, 0 / 0)
    assert.is_truthy(written():find("\nspec_number NaN\n", 1, true))
  end)

  it("escape values of labels, and make UTF-8 of whatever they are", function()
    local metric = family("spec_escapes", { type = "gauge", labels = { "v" } })
    for _, value in ipairs { 'a"b', "a\\b", "a\nb", "a\\nb", "", "gr\195\188n", "{},= " } do
      local before = #held
      C.mw_series_set(series(metric, value), 5)
      assert.are.equal(5, exposition.value(shown(), "spec_escapes", { v = value }), value)
      C.mw_series_unref(table.remove(held, before + 1))
    end
    series(metric, "a\255b\192\175\237\160\128")
    local bad = "\239\191\189"
    assert.are.equal(0, exposition.value(shown(), "spec_escapes",
      { v = "a" .. bad .. "b" .. bad:rep(2) .. bad:rep(3) }))
    -- A long value is cut, not within a character.
    series(metric, ("x"):rep(C.MW_METRIC_VALUE_MAX - 1) .. "\195\188")
    assert.are.equal(0, exposition.value(shown(), "spec_escapes", { v = ("x"):rep(C.MW_METRIC_VALUE_MAX - 1) }))
  end)

  it("are sorted by name and labels, whatever the order in which they came", function()
    for _, name in ipairs { "spec_m", "spec_z", "spec_b" } do
      local metric = family(name, { labels = { "l" } })
      for _, value in ipairs { "m", "z", "b", "ba" } do series(metric, value) end
    end
    local families = shown()
    assert.are.same({ "spec_b", "spec_m", "spec_z" }, { unpack(families) })
    local order = {}
    for i, sample in ipairs(families.spec_m.samples) do order[i] = sample.labels.l end
    assert.are.same({ "b", "ba", "m", "z" }, order)
    assert.are.equal(written(), (written()))
  end)

  it("are one family per name and one series per values, and vanish with the last reference", function()
    local metric = family("spec_shared_total", { labels = { "a" } })
    assert.is_true(metric == family("spec_shared_total", { labels = { "a" } }))
    local one, two = C.mw_metric_series(metric, strings { "x" }), C.mw_metric_series(metric, strings { "x" })
    assert.is_true(one == two)
    C.mw_series_add(one, 3)
    C.mw_series_unref(one)
    assert.are.equal(3, exposition.value(shown(), "spec_shared_total", { a = "x" }))
    C.mw_series_unref(two)
    C.mw_series_unref(nil)
    assert.are.equal("", (written()))
    -- A new one begins at 0.
    series(metric, "x")
    assert.are.equal(0, exposition.value(shown(), "spec_shared_total", { a = "x" }))
  end)

  it("share one series above the limit of a family", function()
    local metric = family("spec_many_total", { labels = { "a", "b" }, max = 3 })
    for i = 1, 3 do C.mw_series_add(series(metric, "x" .. i, "y"), 1) end
    C.mw_log_set_level(C.MW_LOG_ERROR)
    for i = 4, 10 do C.mw_series_add(series(metric, "x" .. i, "y"), 1) end
    C.mw_log_set_level(C.MW_LOG_INFO)
    C.mw_series_add(series(metric, "x2", "y"), 1)
    local families = shown()
    assert.are.equal(4, #families.spec_many_total.samples)
    assert.are.equal(7, exposition.value(families, "spec_many_total", { a = "overflow", b = "overflow" }))
    assert.are.equal(2, exposition.value(families, "spec_many_total", { a = "x2", b = "y" }))
    -- It goes with those who share it, and then there is room again.
    while #held > 0 do C.mw_series_unref(table.remove(held)) end
    series(metric, "x9", "y")
    assert.are.equal(0, exposition.value(shown(), "spec_many_total", { a = "x9", b = "y" }))
  end)

  describe("that are held", function()
    local function hold(name, options)
      local err = unit.err()
      local m = C.mw_metric_hold(spec_of(name, options), err)
      return m ~= nil and m or nil, ffi.string(err.message)
    end

    it("go with the last holder, and their series with them", function()
      local one, two = hold("spec_held", { labels = { "a" } }), hold("spec_held", { labels = { "a" } })
      assert.is_true(one == two)
      series(one, "x")
      C.mw_metric_release(one)
      assert.are.equal(0, exposition.value(shown(), "spec_held", { a = "x" }))
      C.mw_metric_release(two)
      -- The series is still there for who holds it, and shown to nobody.
      C.mw_series_add(held[1], 1)
      assert.are.equal("", (written()))
      -- A new family of the name begins anew, with whatever labels.
      local three = hold("spec_held", { type = "gauge" })
      series(three)
      assert.are.equal(0, exposition.value(shown(), "spec_held"))
      C.mw_metric_release(three)
    end)

    it("give way to one of another shape", function()
      local old = hold("spec_shape", { labels = { "a" } })
      C.mw_series_add(series(old, "x"), 1)
      local new = hold("spec_shape", { labels = { "b" } })
      C.mw_series_add(series(new, "y"), 2)
      assert.are.equal(2, exposition.value(shown(), "spec_shape", { b = "y" }))
      assert.is_nil(exposition.value(shown(), "spec_shape", { a = "x" }))
      C.mw_metric_release(old)
      assert.are.equal(2, exposition.value(shown(), "spec_shape", { b = "y" }))
      C.mw_metric_release(new)
    end)

    it("are refused with a sentence when something is wrong with them", function()
      family("spec_lasting_total")
      for pattern, given in pairs {
        ["spec_lasting_total is one of Moonwatch's own"] = { "spec_lasting_total" },
        ['"a b" is no name for a metric'] = { "a b" },
        ['"1a" is no name for a metric'] = { "1a" },
        ['spec_x cannot have a label "le"'] = { "spec_x", { labels = { "le" } } },
        ['spec_x cannot have a label "a-b"'] = { "spec_x", { labels = { "a-b" } } },
        ['spec_x cannot have a label "__a"'] = { "spec_x", { labels = { "__a" } } },
        ["spec_x has the label a twice"] = { "spec_x", { labels = { "a", "a" } } },
        ["spec_x has buckets but is no histogram"] = { "spec_x", { buckets = { 1 } } },
        ["spec_x has 0 buckets, use 1 to 64"] = { "spec_x", { type = "histogram" } },
        ["bucket 2 of metric spec_x is not above"] = { "spec_x", { type = "histogram", buckets = { 2, 2 } } },
      } do
        local m, message = hold(unpack(given))
        assert.is_nil(m)
        assert.is_truthy(message:find(pattern, 1, true), message)
      end
    end)
  end)

  it("are computed when they are asked for by those who wish it", function()
    local g = series(family("spec_asked", { type = "gauge" }))
    local calls = 0
    local cb = ffi.cast("mw_metric_cb", function()
      calls = calls + 1
      C.mw_series_set(g, calls)
    end)
    C.mw_metric_on_write(cb, nil)
    assert.are.equal(1, exposition.value(shown(), "spec_asked"))
    assert.are.equal(2, exposition.value(shown(), "spec_asked"))
    C.mw_metric_off_write(cb, nil)
    C.mw_metric_off_write(cb, nil)
    assert.are.equal(2, exposition.value(shown(), "spec_asked"))
    cb:free()
  end)

  it("end where the buffer is full, and say so", function()
    local metric = family("spec_full", { labels = { "l" } })
    for i = 1, 100 do series(metric, "value" .. i) end
    local text, rc = written(500)
    assert.are.equal(C.MW_ELIMIT, rc)
    assert.is_true(#text <= 500)
    assert.are.equal(0, select(2, written()))
  end)

  it("count right while threads count, come and go, and write", function()
    local counter = family("spec_threads_total", { labels = { "l" } })
    local histogram = family("spec_threads_seconds", { type = "histogram", buckets = { 1 }, labels = { "l" } })
    local shared = series(counter, "shared")
    local kept = series(histogram, "s3")
    local loops, works = {}, {}
    for i = 1, 4 do
      works[i] = ffi.new("struct spec_metric_work", { counter, histogram, shared, 2000, 0 })
      loops[i] = C.mw_loop_new("spec")
      assert.are.equal(0, C.mw_loop_start_thread(loops[i]))
      C.mw_loop_post(loops[i], C.spec_metric_work, works[i])
    end
    for _ = 1, 20 do shown() end
    for i = 1, 4 do
      C.mw_loop_join_thread(loops[i])
      C.mw_loop_free(loops[i])
      assert.are.equal(0, works[i].failed)
    end
    local families = shown()
    assert.are.equal(8000, exposition.value(families, "spec_threads_total", { l = "shared" }))
    assert.are.equal(1, #families.spec_threads_total.samples)
    -- Of 2000 rounds, 286 are those of "s3": rounds 3, 10, 17 and so on, which observe 0, 1, 2, ...
    assert.are.equal(4 * 286, exposition.value(families, "spec_threads_seconds_count", { l = "s3" }))
    assert.are.equal(C.mw_series_value(kept), exposition.value(families, "spec_threads_seconds_sum", { l = "s3" }))
  end)
end)
