"""Watches a run in a headless browser: its charts move, it complains about nothing, and its last figures are the record's. Run by live.sh."""

import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import time

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.expected_conditions import staleness_of
from selenium.webdriver.support.select import Select

assay = sys.argv[1]
run_args = sys.argv[2:]


def check(holds, what):
    if not holds:
        raise SystemExit("FAILED: " + what)


started = []


def begin(command, **how):
    """Starts a process that ends with this script at the latest."""
    started.append(subprocess.Popen(command, text=True, **how))
    return started[-1]


@atexit.register
def end_what_was_begun():
    for process in reversed(started):
        if process.poll() is None:
            process.terminate()
            process.wait()


def until(what, seen, limit_s=120):
    end = time.monotonic() + limit_s
    while not seen():
        check(time.monotonic() < end, "in vain waited for " + what)
        time.sleep(0.1)


options = Options()
for argument in ("--headless=new", "--disable-dev-shm-usage", "--window-size=1280,900"):
    options.add_argument(argument)
if os.geteuid() == 0:
    options.add_argument("--no-sandbox")
options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
script = driver.execute_script


def quiet(where):
    for entry in driver.get_log("browser"):
        check(entry["level"] not in ("SEVERE", "WARNING"), "%s: the console says: %s" % (where, entry["message"]))


def narrow(where):
    until(where + " as narrow as a phone", lambda: script("return document.documentElement.scrollWidth <= window.innerWidth"))


def keyboard(where):
    """The Tab key reaches all that can be used, and each shows that it has the focus."""
    wanted = script("""
        document.activeElement.blur();
        window.getSelection().removeAllRanges();
        window.scrollTo(0, 0);
        window.reached = new Set();
        window.unseen = [];
        window.controls = Array.from(document.querySelectorAll('a[href], button, summary, input, select, textarea')).filter(
            function (e) { return e.type !== 'hidden' && e.checkVisibility(); });
        window.addEventListener('focusin', function (event) {
            var e = event.target, style = getComputedStyle(e), box = e.getBoundingClientRect();
            reached.add(e);
            if (style.outlineStyle === 'none' || parseFloat(style.outlineWidth) < 2 || box.width === 0 || box.left < 0) {
                unseen.push(e.outerHTML.slice(0, 200));
            }
        });
        return controls.length;""")
    check(wanted > 3, "%s: %d controls" % (where, wanted))
    # A table that scrolls takes the focus too.
    ActionChains(driver).send_keys(Keys.TAB * (2 * wanted + 40)).perform()
    said = "return %s.map(function (e) { return e.outerHTML.slice(0, 200); });"
    missed = script(said % "controls.filter(function (e) { return e.isConnected && !reached.has(e); })")
    check(not missed, "%s: the keyboard does not reach %s" % (where, missed))
    unseen = script("return unseen;")
    check(not unseen, "%s: the focus is not seen on %s" % (where, unseen))
    script("document.activeElement.blur();")


def points():
    return script("""
        return Array.from(document.querySelectorAll('figure.chart .plot')).reduce(function (all, plot) {
            return all + (plot.data || []).reduce(function (sum, trace) { return sum + (trace.x || []).length; }, 0);
        }, 0);""")


def tiles():
    return script("""
        return Array.from(document.querySelectorAll('#live dl.tiles > div')).map(function (box) {
            return [box.querySelector('dt').textContent, box.querySelector('dd').textContent.trim()];
        });""")


run = begin([assay, "run", "--live", "-o", "live"] + run_args, stderr=subprocess.PIPE)
url = next(line for line in run.stderr if line.startswith("live page: ")).split()[-1]
driver.get(url)
until("the page of the run", lambda: script("return document.getElementById('live') !== null"))
# Before the run begins a browser is told to come again.
driver.get_log("browser")
check("token" not in driver.current_url, "the token stays in the address: " + driver.current_url)
until("charts", lambda: points() > 0 and script("return document.documentElement.dataset.final") != "true")
first, figures = points(), tiles()
until("charts that move", lambda: points() > first)
until("figures that change", lambda: tiles() != figures)
check(script("return document.documentElement.scrollWidth <= window.innerWidth"), "the page is wider than the window")
quiet("the live page")
shots = os.environ.get("ASSAY_SHOTS")
if shots:
    # Some seconds more are a picture of more.
    time.sleep(20)
    driver.save_screenshot(os.path.join(shots, "live.png"))

print("- the keyboard, a phone, the dark, and a server that comes again")
keyboard("the live page")
driver.set_window_size(390, 844)
narrow("the live page")
script("document.getElementById('theme').click()")
check(script("return document.documentElement.dataset.theme") == "dark", "it is not dark")
live_page = driver.current_window_handle
token = "a-token-of-the-test"
serve = [assay, "serve", "live", "--token", token, "--listen"]
server = begin(serve + ["127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
url = server.stdout.readline().strip()
driver.switch_to.new_window("tab")
driver.get(url)
until("the page of another process", lambda: tiles() != [])
server.kill()
server.wait()
until("word of the loss", lambda: "no connection" in script("return document.getElementById('now').textContent"))
figures = tiles()
server = begin(serve + [url.split("/")[2]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
until("figures after it", lambda: tiles() != figures)
server.terminate()
check(server.wait() == 0, "the server ended with %d" % server.returncode)
driver.close()
driver.switch_to.window(live_page)

run.send_signal(signal.SIGINT)
until("the last frame", lambda: script("return document.documentElement.dataset.final") == "true")
run.stderr.read()
check(run.wait() == 130, "the run ended with %d" % run.returncode)
with open("live/record.json", encoding="utf-8") as file:
    record = json.load(file)
rate = next(metric for metric in record["metrics"] if metric["key"] == "ops_per_s")["value"]
shown = dict(tiles())
text = next(value for name, value in shown.items() if name.endswith("Operations, whole"))
check(abs(float(text.split()[0].replace(",", "")) - rate) <= rate / 1000 + 0.5, "the last frame says %s, the record %s" % (text, rate))
window = next(metric for metric in record["metrics"] if metric["key"] == "reads_per_s")["value"]
check(script("return document.querySelector('#judgement .tiles') !== null"), "the last page has no figures: %s" % window)

print("- a form that starts, stops and tags runs")
# The page of the run may have asked for it once more when its server was gone.
driver.get_log("browser")
os.mkdir("forms")
serve = begin([assay, "serve", "forms", "--allow-run", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE,
              env=dict(os.environ, ASSAY_TARGET="null:"))
driver.set_window_size(390, 844)
driver.get(serve.stdout.readline().strip())


def press(button):
    """Presses a button that loads a page, and waits for that: the browser is not to be asked about the page before."""
    page = driver.find_element(By.TAG_NAME, "html")
    driver.find_element(By.XPATH, "//button[text()='%s']" % button).click()
    until("the page after " + button, lambda: staleness_of(page)(driver))


def start(settings):
    Select(driver.find_element(By.NAME, "test")).select_by_visible_text("run")
    field = driver.find_element(By.NAME, "settings")
    field.clear()
    field.send_keys(settings)
    press("Start")


start("RUN_TIME=soon")
alert = driver.find_element(By.CSS_SELECTOR, "[role=alert]").text
check("RUN_TIME" in alert, "a bad setting says " + alert)
check(driver.find_element(By.NAME, "settings").get_attribute("value") == "RUN_TIME=soon", "what was typed is gone")
keyboard("the list of runs")
narrow("the list of runs")
if shots:
    driver.save_screenshot(os.path.join(shots, "form.png"))
start("RUN_TIME=600\nWARMUP=0\nRATE=100")
name = driver.find_element(By.CSS_SELECTOR, "#control a").text
driver.find_element(By.CSS_SELECTOR, "#control a").click()
until("the page of the run", lambda: tiles() != [])
driver.back()
press("Stop it and save")
until("its record", lambda: os.path.exists("forms/%s/record.json" % name))
until("the end of the run", lambda: driver.refresh() or driver.find_elements(By.XPATH, "//button[text()='Start']"))
driver.find_element(By.NAME, "change").send_keys("+from-the-form")
press("Tag")
until("the tag", lambda: "from-the-form" in driver.find_element(By.CSS_SELECTOR, "tbody").text)
quiet("the list of runs")
serve.terminate()
check(serve.wait() == 0, "the server ended with %d" % serve.returncode)


def cells():
    return script("""
        return Array.from(document.querySelectorAll('#hosts > li')).map(function (cell) {
            return [cell.className].concat(Array.from(cell.children).map(function (word) { return word.textContent; }));
        });""")


def watch_fleet():
    up = start_quietly([assay, "fleet", "up", "--listen", "127.0.0.1:0"])
    until("the fleet's server", lambda: os.path.exists("assay-fleet/agent.url"))
    for name in ("a", "b"):
        agents.append(start_quietly([assay, "fleet", "agent", "--dir", "assay-fleet", "--name", name, "--machine", name]))
    run = begin([assay, "fleet", "run", "--live", "--hosts", "2", "--lost-after", "3s", "--max-skew", "1h", "-o", "fleet", "--",
                 "run", "--target", "null:", "--set", "RATE=200", "-s", "2", "-t", "1", "--time", "600", "--warmup", "0"],
                stderr=subprocess.PIPE)
    driver.get(next(line for line in run.stderr if line.startswith("live page: ")).split()[-1])
    working = lambda: [cell[:3] for cell in cells()] == [["", "a", "running"], ["", "b", "running"]]
    until("a cell for each host", lambda: driver.execute_script("return document.getElementById('live')") or driver.refresh())
    until("hosts at work", working)
    narrow("the page of a fleet")
    script("document.getElementById('theme').click()")
    if shots:
        driver.save_screenshot(os.path.join(shots, "fleet.png"))
    agents[1].kill()
    until("the lost host in front", lambda: cells()[0][:2] == ["bad", "b"] and cells()[0][2].startswith("lost: nothing heard"))
    run.send_signal(signal.SIGINT)
    until("the last frame", lambda: script("return document.documentElement.dataset.final") == "true")
    run.stderr.read()
    check(run.wait() == 130, "the run of the fleet ended with %d" % run.returncode)
    check([cell[1:3] for cell in cells()][1] == ["a", "measured"], "the last cells are %s" % cells())


def start_quietly(command):
    return begin(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


agents = []
if shutil.which("nats-server", path=os.environ["PATH"] + ":/usr/sbin"):
    print("- a fleet has a cell for each host, and one that is lost says so")
    watch_fleet()
else:
    print("cannot run here: a fleet on a page: no nats-server (package nats-server)")
driver.quit()
