"use strict";
// The page's own script: the theme, the charts (drawn when they come into view) and the gallery.

const root = document.documentElement;
const prefersDark = matchMedia("(prefers-color-scheme: dark)");

// ------------------------------------------------------------ the theme

function isDark() {
  return root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches;
}

function remember(theme) {
  try { localStorage.setItem("lookhops-theme", theme); } catch { /* private windows forget */ }
}

function remembered() {
  try { return localStorage.getItem("lookhops-theme"); } catch { return null; }
}

function showTheme(theme) {
  if (theme) root.dataset.theme = theme;
  const button = document.getElementById("theme");
  button.textContent = isDark() ? "Light theme" : "Dark theme";
  button.hidden = false;
  redrawCharts();
}

// ------------------------------------------------------------ the charts

const figures = JSON.parse(document.getElementById("figures").textContent);
const drawn = new Set();

// The one style of all charts: what Plotly takes where a figure says nothing.
const font = { family: "var(--font)", color: "var(--ink)" };
const axis = {
  showgrid: true, zeroline: true, showline: true, automargin: true,
  gridcolor: "var(--line)", zerolinecolor: "var(--line)", linecolor: "var(--line)",
  title: { standoff: 8, font: { size: 13, color: "var(--muted)" } },
};
const template = {
  layout: {
    font: { ...font, size: 13 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 8, r: 12, t: 12, b: 8 },
    xaxis: axis,
    yaxis: axis,
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", traceorder: "normal" },
    hoverlabel: { bgcolor: "var(--panel)", bordercolor: "var(--line)", font },
  },
};

// Replace the CSS variables in a figure by what they stand for in the theme.
function resolved(value, style = getComputedStyle(root)) {
  if (typeof value === "string" && value.startsWith("var(--")) {
    return style.getPropertyValue(value.slice(4, -1)).trim();
  }
  if (Array.isArray(value)) return value.map((each) => resolved(each, style));
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, resolved(each, style)]));
  }
  return value;
}

// Plotly is a long script: it waits as text until the page is on the screen and a chart is near.
function startPlotly() {
  if (window.Plotly) return;
  const script = document.createElement("script");
  script.textContent = document.getElementById("plotly").textContent;
  document.head.append(script);
}

function drawChart(element) {
  startPlotly();
  const figure = resolved(figures[element.dataset.figure]);
  drawn.add(element);
  return Plotly.react(element, figure.data, { ...figure.layout, template: resolved(template) },
    { responsive: true, displaylogo: false, displayModeBar: false });
}

function redrawCharts() {
  for (const element of drawn) drawChart(element);
}

// Charts that come near the view are drawn one after the other, so that none holds up the page.
function watchCharts() {
  const charts = document.querySelectorAll(".chart");
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      watcher.unobserve(entry.target);
      setTimeout(drawChart, 0, entry.target);
    }
  }, { rootMargin: "300px" });
  charts.forEach((element) => watcher.observe(element));
  // Paper is light, whatever the screen is.
  let screen;
  addEventListener("beforeprint", () => {
    screen = root.dataset.theme;
    root.dataset.theme = "light";
    charts.forEach(drawChart);
  });
  addEventListener("afterprint", () => {
    if (screen) root.dataset.theme = screen; else delete root.dataset.theme;
    redrawCharts();
  });
}

// ------------------------------------------------------------ the gallery

// What a card shows at a layer: dropped shapes fade, discs are as dark as their score.
function showLayer(card, layer) {
  for (const shape of card.querySelectorAll("[data-d]")) {
    shape.classList.toggle("gone", layer >= Number(shape.dataset.d));
  }
  for (const disc of card.querySelectorAll(".score")) {
    const score = layer > 0 ? disc.dataset.s.split(",")[layer - 1] : "";
    disc.style.fillOpacity = score === "" ? 0 : 0.08 + 0.0062 * Number(score);
  }
  const slider = card.querySelector("input");
  const said = JSON.parse(card.dataset.steps)[layer];
  slider.value = layer;
  slider.setAttribute("aria-valuetext", said);
  card.querySelector("output").textContent = said;
}

function makeGallery(gallery) {
  const cards = [...gallery.querySelectorAll(".card")];
  const controls = gallery.querySelector(".controls");
  const [master, everyLayer] = [".master input", ".master output"].map((s) => controls.querySelector(s));
  const chosenClass = controls.querySelector("select");
  let group = "";

  function filter() {
    for (const card of cards) {
      card.hidden = (group && card.dataset.group !== group)
        || (chosenClass.value && card.dataset.class !== chosenClass.value);
    }
    const shown = cards.filter((card) => !card.hidden).length;
    gallery.querySelector(".shown p").textContent = `${shown} of ${cards.length} graphs shown`;
  }

  for (const card of cards) {
    const slider = card.querySelector("input");
    slider.addEventListener("input", () => showLayer(card, Number(slider.value)));
    showLayer(card, 0); // browsers remember where a slider stood
  }
  master.addEventListener("input", () => {
    everyLayer.textContent = master.value;
    for (const card of cards) {
      card.querySelector("output").setAttribute("aria-live", "off"); // one voice is enough
      showLayer(card, Number(master.value));
      card.querySelector("output").setAttribute("aria-live", "polite");
    }
  });
  for (const button of controls.querySelectorAll("button")) {
    button.addEventListener("click", () => {
      group = button.dataset.group;
      controls.querySelectorAll("button").forEach((b) => b.setAttribute("aria-pressed", b === button));
      filter();
    });
  }
  chosenClass.addEventListener("change", filter);
  master.value = 0;
  chosenClass.value = "";
  controls.hidden = false;
  filter();
}

// ------------------------------------------------------------ where the reader is

function followReader() {
  const links = [...document.querySelectorAll("nav a")];
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links) {
        if (link.hash === `#${entry.target.id}`) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    }
  }, { rootMargin: "-20% 0px -70% 0px" });
  document.querySelectorAll("section").forEach((section) => watcher.observe(section));
}

showTheme(remembered());
prefersDark.addEventListener("change", () => showTheme());
document.getElementById("theme").addEventListener("click", () => {
  const theme = isDark() ? "light" : "dark";
  showTheme(theme);
  remember(theme);
});
document.querySelectorAll(".gallery").forEach(makeGallery);
followReader();
watchCharts();
