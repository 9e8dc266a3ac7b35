(function () {
  "use strict";
  var root = document.documentElement;
  var figures = Array.prototype.slice.call(document.querySelectorAll("figure.chart"));
  var dark = window.matchMedia("(prefers-color-scheme: dark)");
  var button = document.getElementById("theme");
  var unfold = document.getElementById("unfold");
  var printing = false;
  var round = 0;

  function isDark() {
    if (printing) { return false; }
    var said = root.getAttribute("data-theme");
    return said ? said === "dark" : dark.matches;
  }

  function colors() {
    return isDark()
      ? { ink: "#e6e9ed", grid: "#2c333b", paper: "#14181d" }
      : { ink: printing ? "#000000" : "#1b1f24", grid: "#e3e7eb", paper: "#ffffff" };
  }

  function draw(figure) {
    var c = colors();
    var text = figure.querySelector("script[type='application/json']").textContent;
    var chart = JSON.parse(text.split('"color":"ink"').join('"color":"' + c.ink + '"'));
    var layout = chart.layout;
    layout.paper_bgcolor = c.paper;
    layout.plot_bgcolor = c.paper;
    layout.font = { family: "system-ui, sans-serif", size: 12, color: c.ink };
    layout.hoverlabel = { bgcolor: c.paper, bordercolor: c.ink, font: { color: c.ink } };
    ["xaxis", "yaxis"].forEach(function (name) {
      layout[name].gridcolor = c.grid;
      layout[name].linecolor = c.ink;
      layout[name].zerolinecolor = c.grid;
    });
    // The width of the paper is not known yet when a browser says that it will print.
    if (printing) { layout.width = 690; layout.height = 300; }
    if (figure.clientWidth < 520) {
      layout.legend.font = { size: 10 };
      layout.margin.l = 50;
    }
    return window.Plotly.react(figure.querySelector(".plot"), chart.data, layout, {
      responsive: true, displaylogo: false, showLink: false,
      modeBarButtonsToRemove: ["select2d", "lasso2d", "sendDataToCloud"]
    });
  }

  // One chart a turn, so that the page can be read while the others are drawn.
  function drawAll() {
    var mine = ++round;
    root.setAttribute("data-drawn", "0");
    var at = 0;
    function next() {
      if (mine !== round) { return; }
      if (at === figures.length) { root.setAttribute("data-ready", "true"); return; }
      Promise.resolve(draw(figures[at])).then(function () {
        at += 1;
        root.setAttribute("data-drawn", String(at));
        window.setTimeout(next, 0);
      });
    }
    next();
  }

  function label() {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-pressed", String(isDark()));
    button.setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
  }

  button.addEventListener("click", function () {
    root.setAttribute("data-theme", isDark() ? "light" : "dark");
    label();
    if (window.Plotly) { drawAll(); }
  });
  dark.addEventListener("change", function () {
    label();
    if (window.Plotly && !root.getAttribute("data-theme")) { drawAll(); }
  });
  unfold.addEventListener("click", function () {
    var open = unfold.getAttribute("aria-pressed") !== "true";
    Array.prototype.forEach.call(document.querySelectorAll("details"), function (d) { d.open = open; });
    unfold.setAttribute("aria-pressed", String(open));
    unfold.textContent = open ? "Close all tables" : "Open all tables";
  });
  function print(on) {
    if (printing === on || !window.Plotly) { return; }
    printing = on;
    round += 1;
    figures.forEach(draw);
    root.setAttribute("data-ready", "true");
  }
  window.addEventListener("beforeprint", function () { print(true); });
  window.addEventListener("afterprint", function () { print(false); });

  label();
  if (window.Plotly) {
    drawAll();
  } else if (figures.length) {
    document.getElementById("no-script").hidden = false;
    figures.forEach(function (f) { f.classList.add("bare"); f.querySelector("details").open = true; });
    root.setAttribute("data-ready", "true");
  }
}());
