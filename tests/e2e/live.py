"""Watches a run in a headless browser: its charts move, it complains about nothing, and its last figures are the record's. Run by live.sh."""

import json
import os
import subprocess
import sys
import time

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

assay = sys.argv[1]
run_args = sys.argv[2:]


def check(holds, what):
    if not holds:
        raise SystemExit("FAILED: " + what)


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


run = subprocess.Popen([assay, "run", "--live", "-o", "live"] + run_args, stderr=subprocess.PIPE, text=True)
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
    driver.save_screenshot(os.path.join(shots, "live.png"))

print("- a phone, the dark, and a server that comes again")
driver.set_window_size(390, 844)
until("a page as narrow as a phone", lambda: script("return document.documentElement.scrollWidth <= window.innerWidth"))
script("document.getElementById('theme').click()")
check(script("return document.documentElement.dataset.theme") == "dark", "it is not dark")
live_page = driver.current_window_handle
token = "a-token-of-the-test"
serve = [assay, "serve", "live", "--token", token, "--listen"]
server = subprocess.Popen(serve + ["127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
url = server.stdout.readline().strip()
driver.switch_to.new_window("tab")
driver.get(url)
until("the page of another process", lambda: tiles() != [])
server.kill()
server.wait()
until("word of the loss", lambda: "no connection" in script("return document.getElementById('now').textContent"))
figures = tiles()
server = subprocess.Popen(serve + [url.split("/")[2]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
until("figures after it", lambda: tiles() != figures)
server.terminate()
check(server.wait() == 0, "the server ended with %d" % server.returncode)
driver.close()
driver.switch_to.window(live_page)

until("the last frame", lambda: script("return document.documentElement.dataset.final") == "true")
run.stderr.read()
check(run.wait() == 0, "the run ended with %d" % run.returncode)
with open("live/record.json", encoding="utf-8") as file:
    record = json.load(file)
rate = next(metric for metric in record["metrics"] if metric["key"] == "ops_per_s")["value"]
shown = dict(tiles())
text = next(value for name, value in shown.items() if name.endswith("Operations, whole"))
check(abs(float(text.split()[0].replace(",", "")) - rate) <= rate / 1000 + 0.5, "the last frame says %s, the record %s" % (text, rate))
window = next(metric for metric in record["metrics"] if metric["key"] == "reads_per_s")["value"]
check(script("return document.querySelector('#judgement .tiles') !== null"), "the last page has no figures: %s" % window)
driver.quit()
