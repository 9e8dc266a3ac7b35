"""Opens pages in a headless browser and compares what is drawn with the records. Run by pages.sh."""

import json
import os
import subprocess
import sys
import time

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

assay = sys.argv[1]
shots = os.environ.get("ASSAY_SHOTS")


def check(holds, what):
    if not holds:
        raise SystemExit("FAILED: " + what)


def browser():
    options = Options()
    for argument in ("--headless=new", "--disable-dev-shm-usage", "--window-size=1280,900", "--force-prefers-reduced-motion"):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)


driver = browser()
script = driver.execute_script


def drawn(limit_s=120):
    end = time.monotonic() + limit_s
    while not script("return document.documentElement.dataset.ready"):
        check(time.monotonic() < end, "the charts are not drawn in %d s" % limit_s)
        time.sleep(0.05)


def open_page(path, charts=True):
    """Opens a page; it must draw every chart, complain about nothing and ask no network."""
    driver.get_log("performance")
    driver.get_log("browser")
    begin = time.monotonic()
    driver.get("file://" + os.path.abspath(path))
    drawn()
    took = time.monotonic() - begin
    for entry in driver.get_log("browser"):
        check(entry["level"] not in ("SEVERE", "WARNING"), "%s: the console says: %s" % (path, entry["message"]))
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            check(url.split(":")[0] in ("file", "data", "blob"), "%s: asks for %s" % (path, url[:200]))
    figures = script("""
        return Array.from(document.querySelectorAll('figure.chart')).map(function (f) {
            var plot = f.querySelector('.plot');
            return {id: f.id, svg: plot.querySelectorAll('svg.main-svg').length, traces: (plot.data || []).length,
                    label: plot.getAttribute('aria-label') || '', cells: f.querySelectorAll('td').length,
                    shown: plot.querySelectorAll('.scatterlayer .trace, .barlayer .trace, .heatmaplayer .hm').length};
        });""")
    check(bool(figures) == charts, "%s: charts: %s" % (path, len(figures)))
    for figure in figures:
        good = figure["svg"] and figure["traces"] and figure["shown"] >= 1 and len(figure["label"]) > 20 and figure["cells"]
        check(good, "%s: chart not whole: %s" % (path, figure))
    names = script("return Array.from(document.querySelectorAll('table')).filter(t => !t.caption || !t.querySelector('th[scope=col]')).length")
    check(names == 0, "%s: %s tables without caption or headings" % (path, names))
    width = script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
    check(width <= 0, "%s: wider than its window by %s" % (path, width))
    print("  %s: %d charts, open and drawn in %.2f s" % (path, len(figures), took))


def trace(chart, name, must=True):
    """x and y of a trace as the plotting script holds them."""
    found = script("""
        var plot = document.querySelector('#' + arguments[0] + ' .plot');
        var t = plot && Array.from(plot.data).find((t) => t.name === arguments[1]);
        return t ? {x: Array.from(t.x), y: Array.from(t.y)} : null;""", chart, name)
    check(found is not None or not must, "no trace %s in %s" % (name, chart))
    return found


def near(a, b):
    if a is None or b is None or isinstance(b, dict):
        return a is None and (b is None or isinstance(b, dict))
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b), 1.0)


def same(got, wanted, what):
    check(len(got) == len(wanted), "%s: %d points, the record has %d" % (what, len(got), len(wanted)))
    for at, (a, b) in enumerate(zip(got, wanted)):
        check(near(a, b), "%s, point %d: drawn %s, recorded %s" % (what, at, a, b))


def numbers_of_the_run():
    record = json.load(open("run/record.json"))
    series = record["series"]
    wanted = [
        ("c-operations", "operations", "ops_count_per_s"),
        ("c-iops", "reads, engine", "read_io_requests_count_per_s"),
        ("c-iops", "writes, engine", "write_io_requests_count_per_s"),
        ("c-mbps", "reads, engine", "read_mib_per_s"),
        ("c-active-sessions", "User I/O", "active_user_io_count"),
        ("c-latency-op", "p99", "op_us_p99"),
        ("c-latency-op", "max", "op_us_max"),
        ("c-latency-db-file-sequential-read", "p99", "db_file_sequential_read_us_p99"),
        ("c-host-cpu", "steal", "host_steal_pct"),
    ]
    compared = 0
    for chart, name, key in wanted:
        got = trace(chart, name, must=False)
        if got is None:
            # Only what has no figure at all is not drawn.
            check(all(isinstance(value, dict) for value in series["metrics"][key]), "%s is not drawn" % key)
            continue
        compared += 1
        same(got["x"], series["t_s"], "%s %s: instants" % (chart, name))
        same(got["y"], series["metrics"][key], "%s %s" % (chart, name))
    check(compared >= 7, "only %d series are drawn" % compared)
    for key in ("device_read_requests_count_per_s", "db_cpu_s_per_s"):
        check(key in series["metrics"], "the series has no " + key)
    event = next(e for e in record["instance"]["events"] if e["name"] == "db file sequential read")
    used = [i for i, n in enumerate(event["hist_us"]) if n]
    part = event["hist_us"][used[0]:used[-1] + 1]
    bars = trace("c-hist-foreground-db-file-sequential-read", "% of waits")
    same(bars["y"], [100.0 * n / sum(part) for n in part], "histogram in waits")
    middle = [(0.5 if i == 0 else 0.75 * 2 ** i) for i in range(used[0], used[-1] + 1)]
    whole = sum(n * m for n, m in zip(part, middle))
    bars = trace("c-hist-foreground-db-file-sequential-read", "% of time")
    same(bars["y"], [100.0 * n * m / whole for n, m in zip(part, middle)], "histogram in time")
    sessions = trace("c-per-session", "operations")
    same(sessions["y"], sorted(s["ops_count"] for s in record["driver"]["per_session"]), "operations per session")
    for row in series["heat"]:
        if row["layer"] != "client":
            continue
        slug = "-".join("".join(c if c.isalnum() else " " for c in row["name"]).lower().split())
        counts = script("return document.querySelector('#c-heat-client-' + arguments[0] + ' .plot').data[0].text", slug)
        got = sum(int(n) for line in counts for n in line)
        check(got == sum(n for step in row["buckets"] for _, n in step), "heat map of " + row["name"])
    rows = script("return document.querySelectorAll('#c-operations tbody tr').length")
    check(rows == len(series["t_s"]), "the table behind a chart has other rows")
    check(script("return document.title").startswith(record["run"]["id"]), "the label ran as a script")
    check('<script>document.title="owned"</script>' in script("return document.querySelector('h1').textContent"), "the label")
    check("marked" in script("return document.querySelector('#c-active-sessions .marks').textContent"), "the command is no mark")


def colours_and_keyboard():
    background = lambda: script("return getComputedStyle(document.body).backgroundColor")
    paper = lambda: script("return document.querySelector('#c-iops .plot').layout.paper_bgcolor")
    light = (background(), paper())
    script("window.scrollTo(0, 0); document.activeElement.blur()")
    ActionChains(driver).send_keys(Keys.TAB).perform()
    focus = lambda: script("return document.activeElement.className + '#' + document.activeElement.id")
    check(focus() == "skip#", "the first stop is %s, not the skip link" % focus())
    ActionChains(driver).send_keys(Keys.TAB).perform()
    check(focus() == "#theme", "the second stop is %s" % focus())
    script("document.documentElement.removeAttribute('data-ready')")
    ActionChains(driver).send_keys(Keys.ENTER).perform()
    drawn()
    dark = (background(), paper())
    check(light[0] != dark[0] and light[1] != dark[1], "dark is not dark: %s %s" % (light, dark))
    check(script("return document.getElementById('theme').getAttribute('aria-pressed')") == "true", "the button does not say so")
    ActionChains(driver).send_keys(Keys.TAB).perform()
    check(focus() == "#unfold", "the third stop is %s" % focus())
    ActionChains(driver).send_keys(Keys.SPACE).perform()
    closed = script("return document.querySelectorAll('details:not([open])').length")
    check(closed == 0, "%d tables stay closed" % closed)
    ActionChains(driver).send_keys(Keys.SPACE).perform()
    script("document.querySelector('a.skip').focus()")
    ActionChains(driver).send_keys(Keys.ENTER).perform()
    check(script("return location.hash") == "#main", "the skip link leads nowhere")
    script("document.querySelector('#c-iops summary').focus()")
    ActionChains(driver).send_keys(Keys.ENTER).perform()
    check(script("return document.querySelector('#c-iops details').open"), "a table does not open by keyboard")
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
    open_page("io/report.html")
    check(background() == dark[0], "the system's dark colours are not followed")
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "light"}]})


def paper():
    import base64
    pdf = base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    check(pdf[:5] == b"%PDF-" and len(pdf) > 50000, "printed to %d bytes" % len(pdf))
    if shots:
        open(os.path.join(shots, "run.pdf"), "wb").write(pdf)
    print("  on paper: %d pages, %d KiB" % (pdf.count(b"/Type /Page\n") or pdf.count(b"/Type /Page"), len(pdf) // 1024))


def narrow():
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True})
    open_page("run/report.html")
    shot("narrow")
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def shot(name):
    if not shots:
        return
    import base64
    width = script("return document.documentElement.clientWidth")
    height = script("return document.documentElement.scrollHeight")
    for at in range(0, min(height, 15000), 1500):
        clip = {"x": 0, "y": at, "width": width, "height": min(1500, height - at), "scale": 1}
        image = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        open(os.path.join(shots, "%s-%02d.png" % (name, at // 1500)), "wb").write(base64.b64decode(image["data"]))


def long_run(hours):
    """A series of one second steps with fifty metrics, each with one spike, in a record of its own."""
    record = json.load(open("run/record.json"))
    series, rows = record["series"], 3600 * hours
    keys = sorted(series["metrics"])[:50]
    keys += [key for key in ("ops_count_per_s", "op_us_p99") if key not in keys]
    spike = rows // 3
    metrics = {}
    for nth, key in enumerate(keys):
        column = [100 + (s * (nth + 3)) % 17 for s in range(rows)]
        column[spike] = 5000
        metrics[key] = column
    series.update({"t_s": [s + 1.0 for s in range(rows)], "in_window": [True] * rows, "metrics": metrics, "heat": []})
    os.makedirs("long", exist_ok=True)
    json.dump(record, open("long/record.json", "w"))
    begin = time.monotonic()
    subprocess.run([assay, "report", "long", "--format", "html", "-o", "long.html"], check=True, timeout=120)
    print("  %d h, %d metrics: page of %.1f MB in %.2f s" % (hours, len(keys), os.path.getsize("long.html") / 1e6, time.monotonic() - begin))
    open_page("long.html")
    got = trace("c-operations", "operations")
    check(len(got["y"]) <= 1500, "%d points" % len(got["y"]))
    check(5000 in got["y"], "the spike is lost")
    at = got["x"][got["y"].index(5000)] * (3600 if hours > 2 else 1)
    check(abs(at - (spike + 1)) < 1e-6 * rows, "the spike is at %s instead of %s" % (at, spike + 1))
    took = driver.execute_async_script("""
        var done = arguments[arguments.length - 1], begin = performance.now();
        var plots = Array.from(document.querySelectorAll('.plot')).filter((p) => p.layout && p.layout.xaxis.type === 'linear');
        var one = 0;
        plots.reduce(function (before, plot) {
            return before.then(function () { return Plotly.relayout(plot, {'xaxis.range': [plot.data[0].x[10], plot.data[0].x[200]]}); });
        }, Promise.resolve()).then(function () { done([plots.length, performance.now() - begin]); });""")
    print("  %d h: %d charts looked at closer in %.0f ms each" % (hours, took[0], took[1] / max(took[0], 1)))


try:
    driver.set_script_timeout(120)
    open_page("run/report.html")
    numbers_of_the_run()
    shot("light")
    colours_and_keyboard()
    open_page("run/report.html")
    paper()
    narrow()
    for page in ("sweep/report.html", "compare.html", "shared.html"):
        open_page(page)
        shot(os.path.basename(page).split(".")[0])
    steps = sorted(name for name in os.listdir("sweep") if name.startswith("step-"))
    open_page(os.path.join("sweep", steps[0], "report.html"))
    swept = json.load(open("sweep/record.json"))["parts"]["sweep"]
    open_page("sweep/report.html")
    same(trace("c-throughput-1", "measured")["y"], [s["ops_per_s"] for s in swept["steps"]], "throughput of the steps")
    open_page("index.html", charts=False)
    check(script("return document.querySelectorAll('tbody a[href=\"run/report.html\"]').length") == 1, "the index leads to no run")
    script("var s = document.getElementById('search'); s.value = 'no such run'; s.dispatchEvent(new Event('input'))")
    check(script("return document.querySelectorAll('tbody tr:not([hidden])').length") == 0, "the index is not searched")
    shot("index")
    open_page("io/report.html")
    shot("io")
    probe = json.load(open("io/record.json"))
    # The rest of a second at the end of a job is no point: its rate says nothing.
    seconds = probe["series"]["metrics"]
    whole = [rate for rate, length in zip(seconds["read_ios_count_per_s"], seconds["length_s"]) if length >= 0.5]
    same(trace("c-iops-0", "reads")["y"], whole, "reads of the probe")
    os.rename("assay-plotly.js", "away.js")
    driver.get("file://" + os.path.abspath("shared.html"))
    drawn()
    check(script("return !document.getElementById('no-script').hidden"), "a page without its script does not say so")
    check(script("return document.querySelector('figure.chart details').open"), "a page without its script hides its tables")
    os.rename("away.js", "assay-plotly.js")
    long_run(1)
    long_run(24)
finally:
    driver.quit()
