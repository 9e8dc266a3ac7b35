(function () {
  "use strict";
  var root = document.documentElement;
  var figures = Array.prototype.slice.call(document.querySelectorAll("figure.chart"));
  var dark = window.matchMedia("(prefers-color-scheme: dark)");
  var button = document.getElementById("theme");
  var unfold = document.getElementById("unfold");
  var printing = false;
  var round = 0;
  var following = false;

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
    // Names of series above a narrow chart would lie below its tool bar.
    if (figure.clientWidth < 700) { layout.legend.y = -0.25; layout.legend.yanchor = "top"; }
    if (figure.clientWidth < 520) {
      layout.legend.font = { size: 10 };
      layout.margin.l = 50;
    }
    var plot = figure.querySelector(".plot");
    return window.Plotly.react(plot, chart.data, layout, {
      responsive: true, displaylogo: false, showLink: false, modeBarButtons: [["toImage", "resetScale2d"]]
    }).then(function () { join(plot); });
  }

  // Charts with the same axis across are looked at together: one line, one stretch.
  function across(plot) {
    var axis = plot.layout && plot.layout.xaxis;
    return axis && axis.type !== "category" ? axis.title.text : "";
  }

  function alike(plot) {
    return figures.map(function (f) { return f.querySelector(".plot"); }).filter(function (other) {
      return across(other) && across(other) === across(plot);
    });
  }

  function join(plot) {
    if (plot.cross || !across(plot)) { return; }
    plot.cross = document.createElement("div");
    plot.cross.className = "cross";
    plot.appendChild(plot.cross);
    plot.on("plotly_hover", function (event) { alike(plot).forEach(function (other) { cross(other, event.points[0].x); }); });
    plot.on("plotly_unhover", function () { alike(plot).forEach(function (other) { cross(other, null); }); });
    plot.on("plotly_relayout", function (change) { if (!following) { follow(plot, change); } });
  }

  function cross(plot, x) {
    var axis = plot._fullLayout.xaxis, area = plot._fullLayout._size;
    var at = x === null ? NaN : axis.d2p(x);
    var isIn = plot.cross && at >= 0 && at <= area.w;
    if (!plot.cross) { return; }
    plot.cross.style.display = isIn ? "block" : "none";
    if (isIn) {
      plot.cross.style.left = (area.l + at) + "px";
      plot.cross.style.top = area.t + "px";
      plot.cross.style.height = area.h + "px";
    }
  }

  function follow(plot, change) {
    var isAll = change["xaxis.autorange"];
    if (!isAll && change["xaxis.range[0]"] === undefined) { return; }
    var range = isAll ? null : [change["xaxis.range[0]"], change["xaxis.range[1]"]];
    following = true;
    Promise.all(alike(plot).map(function (other) {
      return other === plot ? null : window.Plotly.relayout(other, isAll ? { "xaxis.autorange": true } : { "xaxis.range": range });
    })).then(function () { following = false; });
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
    Array.prototype.forEach.call(document.querySelectorAll("details:not(.fold)"), function (d) { d.open = open; });
    unfold.setAttribute("aria-pressed", String(open));
    unfold.textContent = open ? "Close all tables" : "Open all tables";
  });
  // What a link leads to is open.
  function reveal() {
    var target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    var fold = target && (target.closest("details.fold") || target.querySelector("details.fold"));
    if (fold && !fold.open) { fold.open = true; target.scrollIntoView(); }
  }
  window.addEventListener("hashchange", reveal);
  document.querySelector("nav").addEventListener("click", function () { window.setTimeout(reveal, 0); });
  var folded = [];
  function print(on) {
    if (on) { folded = Array.prototype.slice.call(document.querySelectorAll("details.fold:not([open])")); }
    folded.forEach(function (d) { d.open = on; });
    if (printing === on || !window.Plotly) { return; }
    printing = on;
    round += 1;
    figures.forEach(draw);
    root.setAttribute("data-ready", "true");
  }
  window.addEventListener("beforeprint", function () { print(true); });
  window.addEventListener("afterprint", function () { print(false); });

  var search = document.getElementById("search");
  if (search) {
    search.addEventListener("input", function () {
      var wanted = search.value.toLowerCase();
      Array.prototype.forEach.call(document.querySelectorAll("tbody tr"), function (row) {
        row.hidden = row.textContent.toLowerCase().indexOf(wanted) < 0;
      });
    });
  }

  // The plotting script of a page on its own is compressed.
  function unpack(packed) {
    var bytes = Uint8Array.from(atob(packed.textContent), function (c) { return c.charCodeAt(0); });
    var stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    packed.remove();
    return new Response(stream).text().then(function (code) {
      var plain = document.createElement("script");
      plain.textContent = code;
      document.head.appendChild(plain);
    });
  }

  // A run that goes on: its figures each second, and the rest of the page when nobody reads in it.
  function show(frame) {
    document.getElementById("now").textContent = frame.now;
    document.title = frame.title;
    document.querySelector("h1").textContent = frame.title;
    var tiles = frame.tiles.map(function (tile) {
      var box = document.createElement("div"), name = document.createElement("dt"), value = document.createElement("dd");
      var unit = document.createElement("span");
      unit.className = "unit";
      value.className = tile.unit ? "" : "na";
      unit.textContent = tile.unit;
      name.textContent = tile.of ? tile.name + ", " + tile.of : tile.name;
      value.append(tile.value + " ", unit);
      box.append(name, value);
      return box;
    });
    var list = document.querySelector("#live dl");
    list.replaceChildren.apply(list, tiles);
    strip(document.getElementById("hosts"), frame.hosts || []);
  }

  // A cell for each host of a fleet; many are small.
  function strip(list, hosts) {
    list.classList.toggle("many", hosts.length > 24);
    list.replaceChildren.apply(list, hosts.map(function (host) {
      var cell = document.createElement("li");
      cell.className = host.class;
      cell.title = host.name + ": " + host.state;
      [["b", host.name], ["span", host.state], ["span", host.rate]].forEach(function (part) {
        var word = document.createElement(part[0]);
        word.textContent = part[1];
        cell.append(word, " ");
      });
      return cell;
    }));
  }

  function isRead(main) {
    return (main !== document.activeElement && main.contains(document.activeElement)) || !window.getSelection().isCollapsed;
  }

  function renew(text, isLast) {
    var next = new DOMParser().parseFromString(text, "text/html");
    var old = document.getElementById("main"), main = next.getElementById("main");
    if (!main || (!isLast && isRead(old))) { return; }
    main = document.adoptNode(main);
    var open = {};
    function said(d) { return d.querySelector("summary").textContent; }
    Array.prototype.forEach.call(old.querySelectorAll("details"), function (d) { open[said(d)] = d.open; });
    Array.prototype.forEach.call(main.querySelectorAll("details"), function (d) { if (said(d) in open) { d.open = open[said(d)]; } });
    figures = Array.prototype.slice.call(main.querySelectorAll("figure.chart"));
    figures.forEach(function (f) {
      var before = document.getElementById(f.id), plot = before && before.querySelector(".plot");
      if (plot) { f.querySelector(".plot").replaceWith(plot); }
    });
    document.querySelector("nav ul").replaceWith(document.adoptNode(next.querySelector("nav ul")));
    old.replaceWith(main);
    if (window.Plotly) { drawAll(); }
  }

  function watch() {
    var source = new EventSource(location.pathname + "/events"), asked = 0;
    source.onmessage = function (event) {
      var frame = JSON.parse(event.data);
      show(frame);
      if (frame.final) {
        source.close();
        root.setAttribute("data-final", "true");
        renew(frame.page, true);
      } else if (Date.now() - asked > 4000 && !document.hidden) {
        asked = Date.now();
        fetch(location.pathname).then(function (page) { return page.ok ? page.text() : ""; })
          .then(function (text) { renew(text, false); }, function () {});
      }
    };
    source.onerror = function () { document.getElementById("now").textContent = "no connection to assay; trying again"; };
  }

  function begin() {
    if (window.Plotly) { drawAll(); return; }
    document.getElementById("no-script").hidden = false;
    figures.forEach(function (f) { f.classList.add("bare"); f.querySelector("details").open = true; });
    root.setAttribute("data-ready", "true");
  }

  label();
  if (document.getElementById("live")) { watch(); }
  var packed = document.getElementById("packed");
  if (!figures.length) {
    root.setAttribute("data-ready", "true");
  } else if (packed && window.DecompressionStream) {
    unpack(packed).then(begin, begin);
  } else {
    begin();
  }
}());
