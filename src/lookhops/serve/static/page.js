// The page of the service. Whatever is asked is a job: its answers come when it is done, and the
// pictures of the graphs that are shown are asked for after that.

const byId = (id) => document.getElementById(id);
const PAGE_SIZE = 12; // cards that are shown at a time
const AT_A_TIME = 3; // cards whose pictures are asked for together
const LEGEND = 30; // height of a picture's legend
const MOST_ROWS = 600; // rows that are shown at all; the CSV has every one
const NEIGHBOURS = 3; // training graphs that are shown beside each answer
const MOST_TARGETS = 3; // of more, the CSV has what was measured of them
const MINUS = "\u2212";

// ------------------------------------------------------------ the theme

const root = document.documentElement;
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const store = (name, value) => { try { localStorage.setItem(name, value); } catch { /* private windows forget */ } };
const stored = (name) => { try { return localStorage.getItem(name); } catch { return null; } };
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);

function showTheme(theme) {
  if (theme) root.dataset.theme = theme;
  root.classList.toggle("dark", isDark());
  byId("theme").textContent = isDark() ? "Light theme" : "Dark theme";
  byId("theme").hidden = false;
}

// ------------------------------------------------------------ asking the service

// The token comes after the #, which browsers keep to themselves.
let token = new URLSearchParams(location.hash.slice(1)).get("token") ?? sessionStorage.getItem("token") ?? "";
if (location.hash.startsWith("#token=")) history.replaceState(null, "", location.pathname);

class Refused extends Error {
  constructor(status, sentence) { super(sentence); this.status = status; }
}

async function ask(path, options = {}) {
  const headers = { accept: "application/json", ...options.headers };
  if (token) headers.authorization = `Bearer ${token}`;
  let answer;
  try {
    answer = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The service does not answer; is it still running?");
  }
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({}));
  throw new Refused(answer.status, said.error ?? `The service answered ${answer.status}.`);
}

const askJson = async (path, options) => (await ask(path, options)).json();

// ------------------------------------------------------------ small pieces

function element(kind, { text, ...attributes } = {}, ...children) {
  const made = document.createElement(kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  made.append(...children);
  return made;
}

const written = (value, digits = 3) => (value === null ? "?" : Number(value.toPrecision(digits)).toString().replace("-", MINUS));
const percent = (share) => `${Math.round(100 * share)}\u00a0%`;
const alternatives = (names) => (names.length > 6 ? `${names.slice(0, 6).join(", ")}, …` : names.join(", ").replace(/, (?=[^,]*$)/, " or "));
const counted = (count, thing) => `${count.toLocaleString("en")} ${thing}${count === 1 ? "" : "s"}`;

function showError(sentence) {
  byId("error").textContent = sentence ?? "";
  byId("error").hidden = !sentence;
}

// ------------------------------------------------------------ the models

let models = [];
const model = () => models[byId("model").selectedIndex] ?? models[0];

async function start() {
  try {
    models = await askJson("/v1/models");
  } catch (error) {
    byId("token").hidden = error.status !== 401;
    if (error.status === 401) { byId("token-text").focus(); showError(token ? error.message : ""); }
    else showError(error.message);
    return;
  }
  if (token) sessionStorage.setItem("token", token);
  byId("token").hidden = true;
  byId("ask").hidden = false;
  showError();
  byId("model").replaceChildren(...models.map((one) => element("option", { text: one.name })));
  byId("models").hidden = models.length < 2;
  showModel();
}

// A field for each feature of whole graphs that the model reads.
function showFeatures(features) {
  const fields = features.map(({ name, values }) => {
    const own = values
      ? element("select", { name }, ...["", ...values].map((value) => element("option", { text: value })))
      : element("input", { name, type: "text", inputmode: "decimal", size: "8" });
    return element("label", {}, `${name} `, own);
  });
  const [legend] = byId("features").children;
  byId("features").replaceChildren(legend, ...fields);
  byId("features").hidden = !features.length;
}

// A question with what the fields say of each graph; what the text itself says comes before it.
function withFeatures(name, text) {
  const fields = [...byId("features").querySelectorAll("[name]")];
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  if (!fields.length || name.endsWith(".csv")) return [name, text];
  if (name.endsWith(".jsonl")) {
    const known = Object.fromEntries(fields.map(({ name: own, value }) => [own, value || null]));
    try {
      return [name, lines.map((line) => JSON.stringify({ ...known, ...JSON.parse(line) })).join("\n")];
    } catch { return [name, text]; } // the service says what is wrong
  }
  const row = (cells) => cells.map((cell) => `"${cell.replaceAll('"', '""')}"`).join(",");
  const rows = lines.map((line) => {
    const [smiles, ...rest] = line.split(/\s+/);
    return row([smiles, rest.join(" ") || smiles, ...fields.map(({ value }) => value)]);
  });
  return [name.replace(".smi", ".csv"), [row(["smiles", "name", ...fields.map((own) => own.name)]), ...rows].join("\n")];
}

function showModel() {
  const { name, targets, molecules, trained_on, graphs, networks, tested } = model();
  const asked = targets.map(({ name: target, classes }) => (target ? `${target}: ` : "") + (classes ? alternatives(classes) : "a number")).join("; ");
  byId("title").textContent = `Ask ${name}`;
  showFeatures(model().features);
  byId("about").textContent = asked;
  byId("tab-draw").hidden = !molecules;
  byId("example").hidden = !molecules || byId("panel-text").hidden;
  if (!molecules && !byId("panel-draw").hidden) choose(byId("tab-text"));
  byId("text-label").textContent = molecules
    ? "SMILES, one a line, each with a name if you like"
    : "Graphs in node-link form, one a line; or a table of edges (CSV)";
  byId("text").placeholder = molecules
    ? "CC(=O)Oc1ccccc1C(=O)O  aspirin"
    : '{"nodes": [{"id": 1}, {"id": 2}], "edges": [{"source": 1, "target": 2}]}';
  byId("kinds").textContent = molecules
    ? ".csv or .tsv with a column of SMILES, .smi, .sdf, .graphs, .parquet"
    : ".jsonl, .csv or .tsv of edges, .graphs, .parquet";
  byId("trained").textContent = `Trained on ${trained_on} (${counted(graphs, "graph")}); ${
    networks === 1 ? "one model answers" : `${networks} models answer together`}. Measured on graphs that it was not trained on:`;
  byId("tested").replaceChildren(...Object.entries(tested).map(([title, value]) => {
    const [figure, ...rest] = value.split(" (");
    const ends = rest.length ? [element("dd", { text: rest.join(" (").replace(/\)$/, "") })] : [];
    return element("div", {}, element("dt", { text: title }), element("dd", { text: figure, class: "value" }), ...ends);
  }));
  byId("figures").hidden = Object.keys(tested).length === 0;
}

// ------------------------------------------------------------ the tabs

const tabs = [...document.querySelectorAll("[role=tab]")];

function choose(tab) {
  for (const one of tabs) {
    const chosen = one === tab;
    one.setAttribute("aria-selected", chosen);
    one.tabIndex = chosen ? 0 : -1;
    byId(one.getAttribute("aria-controls")).hidden = !chosen;
  }
  byId("go").hidden = tab.id === "tab-file"; // a file is asked about when it is chosen
  byId("example").hidden = tab.id !== "tab-text" || !model().molecules;
  if (tab.id === "tab-draw") startSketcher();
}

for (const tab of tabs) {
  tab.addEventListener("click", () => choose(tab));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const shown = tabs.filter((one) => !one.hidden);
    const next = shown[(shown.indexOf(tab) + step + shown.length) % shown.length];
    choose(next);
    next.focus();
  });
}

// ------------------------------------------------------------ drawing

let sketcher; // a promise of the editor: its script is long, and read when somebody wants to draw

function startSketcher() {
  sketcher ??= import("/static/openchemlib/openchemlib.js").then(({ CanvasEditor }) => {
    const editor = new CanvasEditor(byId("sketcher"));
    editor.setOnChangeListener(() => { byId("drawn").textContent = smilesOf(editor) || "nothing drawn yet"; });
    return editor;
  });
  return sketcher;
}

const smilesOf = (editor) => editor.getMolecule().toIsomericSmiles();

// ------------------------------------------------------------ the question

const EXAMPLE = `CC(=O)Oc1ccccc1C(=O)O  aspirin
Cn1cnc2c1c(=O)n(C)c(=O)n2C  caffeine
OCC1OC(O)C(O)C(O)C1O  glucose
c1ccc2cc3ccccc3cc2c1  anthracene`;

// What to call pasted text: its beginning tells what it is.
function nameOf(text) {
  const [line] = text.trimStart().split("\n", 1);
  if (line.startsWith("{")) return "pasted.jsonl";
  const table = /[,;\t]/.test(line) && /\b(smiles|source|target|structure|mol)\b/i.test(line);
  return table || !model().molecules ? "pasted.csv" : "pasted.smi";
}

async function submit() {
  showError();
  if (!byId("panel-draw").hidden) {
    const smiles = smilesOf(await startSketcher());
    if (!smiles) return showError("Draw a molecule first.");
    return run(...withFeatures("drawn.smi", `${smiles} drawn\n`));
  }
  const text = byId("text").value;
  if (!text.trim()) { byId("text").focus(); return showError("Paste something to ask about first."); }
  return run(...withFeatures(nameOf(text), text));
}

// ------------------------------------------------------------ the job

let current; // what is asked now: its job, its answers, and how to stop it

async function run(name, content) {
  current?.stopper.abort();
  if (current?.job) ask(`/v1/jobs/${current.job.id}`, { method: "DELETE" }).catch(() => {});
  const mine = current = { stopper: new AbortController(), answers: [], shown: 0, coverage: byId("coverage").value, model: model() };
  const { signal } = mine.stopper;
  showError();
  byId("results").hidden = true;
  showProgress({ state: "sending", done: 0, total: null });
  try {
    const neighbours = mine.model.neighbours ? NEIGHBOURS : 0;
    const query = new URLSearchParams({ name, model: mine.model.name, coverage: mine.coverage, neighbours });
    mine.job = await askJson(`/v1/jobs?${query}`, { method: "POST", body: content, signal });
    const at = `/v1/jobs/${mine.job.id}`;
    const result = askJson(`${at}/result?limit=${MOST_ROWS}`, { signal });
    watch(mine, at, result);
    const { answers, total, notes } = await result;
    Object.assign(mine, { answers, total, notes });
    if (mine === current) showAnswers(mine);
  } catch (error) {
    if (mine === current && error.name !== "AbortError") showError(error.message);
  } finally {
    if (mine === current) byId("progress").hidden = true;
  }
}

// Ask how far a job is until its result is there.
async function watch(mine, at, result) {
  let over = false;
  result.catch(() => {}).finally(() => { over = true; });
  for (let wait = 100; !over && mine === current; wait = Math.min(1000, 1.5 * wait)) {
    await new Promise((done) => setTimeout(done, wait));
    if (over || mine !== current) return;
    await askJson(at).then((state) => over || showProgress(state)).catch(() => {});
  }
}

function showProgress({ state, done, total }) {
  const bar = byId("bar");
  byId("progress").hidden = false;
  if (total) { bar.max = total; bar.value = done; } else bar.removeAttribute("value");
  byId("progress-text").textContent = total
    ? `${done.toLocaleString("en")} of ${counted(total, "graph")} answered`
    : { sending: "sending", reading: "reading the graphs" }[state] ?? state;
}

// ------------------------------------------------------------ the answers

function showAnswers(mine) {
  const { answers, total, notes } = mine;
  byId("results-title").textContent = models.length > 1 ? `Answers of ${mine.model.name}` : "Answers";
  const unlike = answers.filter((one) => one.unlike).length;
  const skipped = answers.filter((one) => one.skipped).length;
  const parts = [`${counted(total, "graph")} answered`];
  if (skipped) parts.push(`${counted(skipped, "row")} skipped`);
  if (unlike) parts.push(`${unlike} unlike what the model was trained on`);
  if (total + skipped > answers.length) parts.push(`the first ${answers.length} rows are shown here`);
  byId("count").textContent = `${parts.join("; ")}.`;
  byId("notes").replaceChildren(...notes.map((text) => element("p", { class: "note", text })));
  const { targets } = mine.model;
  byId("target").replaceChildren(...targets.map(({ name }) => element("option", { text: name })));
  byId("explained").hidden = targets.length < 2;
  byId("cards").replaceChildren();
  byId("results").hidden = false;
  mine.shown = 0;
  showMore(mine);
  byId("results-title").focus({ preventScroll: true });
  byId("results").scrollIntoView({ block: "start" });
}

function showMore(mine) {
  const rows = mine.answers.slice(mine.shown, mine.shown + PAGE_SIZE).map((answer, i) => [mine.shown + i, answer]);
  byId("cards").append(...rows.map(([row, answer]) => card(mine, row, answer)));
  mine.shown += rows.length;
  byId("more").hidden = mine.shown >= mine.answers.length;
  explainAll(mine, rows.filter(([, answer]) => !answer.skipped).map(([row]) => row));
}

function card(mine, row, answer) {
  const title = element("h3", { text: answer.id, title: answer.id });
  const made = element("li", { class: "card", "data-row": row }, element("header", {}, title));
  if (answer.skipped) {
    made.firstChild.append(element("span", { class: "badge skipped", text: "skipped" }));
    made.append(element("p", { class: "said", text: answer.skipped }));
    return made;
  }
  if (answer.unlike) made.firstChild.append(element("span", { class: "badge unlike", text: "unlike the training set" }));
  const each = answer.targets ? Object.entries(answer.targets) : [["", answer]];
  made.append(
    element("div", { class: "picture", text: "what speaks for it …" }),
    element("div", { class: "targets" }, ...each.map(([name, own]) => target(mine, name, own))),
    element("p", { class: "said because", text: "" }),
  );
  if (answer.unlike) made.append(element("p", { class: "warn", text: "It is unlike all graphs that the model was trained on: do not rely on the answer." }));
  if (answer.neighbours?.length) made.append(neighbours(mine, answer.neighbours));
  else if (answer.similarity !== undefined) made.append(element("p", { class: "facts", text: `similarity to the nearest training graph ${answer.similarity.toFixed(2)}` }));
  return made;
}

// The most similar training graphs: what they are called, what was measured, how similar they are.
function neighbours(mine, each) {
  const value = (one) => (typeof one === "number" ? written(one, 4) : one ?? "not measured");
  const targets = each[0].targets ? Object.keys(each[0].targets) : ["measured"];
  const titles = targets.length > MOST_TARGETS ? [] : targets;
  const head = ["most similar", ...titles, "similarity"].map((text) => element("th", { text, scope: "col" }));
  const rows = each.map((one) => {
    const values = titles.length ? Object.values(one.targets ?? [one.target]) : [];
    const name = element("th", { text: one.id, title: one.smiles ?? one.id, scope: "row" });
    return element("tr", {}, name, ...[...values.map(value), one.similarity.toFixed(2)].map((text) => element("td", { text })));
  });
  return element("div", { class: "neighbours" }, element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows)));
}

function target(mine, name, own) {
  const made = element("div", {});
  if (name) made.append(element("h4", { text: name }));
  const sure = percent(Number(mine.coverage));
  if ("class" in own) {
    const share = own.probabilities[own.class];
    const bar = element("span", { class: "bar", "aria-hidden": "true" }, element("i"));
    bar.firstChild.style.width = `${100 * share}%`;
    made.append(element("div", { class: "answer" }, element("span", { text: own.class }), bar, element("span", { class: "number", text: percent(share) })));
    const facts = [];
    if (own.set) facts.push(`${sure} set: ${own.set.join(" or ")}`);
    if (mine.model.networks > 1) facts.push(`${percent(own.agreement)} of the models agree`);
    made.append(element("p", { class: "facts", text: facts.join("; ") }));
  } else {
    made.append(element("p", { class: "number", text: written(own.value, 4) }));
    const facts = [];
    if (own.interval) facts.push(`${sure} interval: ${own.interval.map((end) => written(end)).join(" to ")}`);
    if (mine.model.networks > 1) facts.push(`the models differ by ${written(own.spread, 2)}`);
    made.append(element("p", { class: "facts", text: facts.join("; ") }));
  }
  return made;
}

// A few at a time, so that the first pictures come soon.
async function explainAll(mine, rows) {
  for (let i = 0; i < rows.length && mine === current; i += AT_A_TIME) await explain(mine, rows.slice(i, i + AT_A_TIME));
}

// A picture without its own style (the page's has the page's colours) and without its legend, for
// which a card has no room.
function drawing(text) {
  const plain = text.replace(/<style>[^]*?<\/style>/, "");
  const picture = new DOMParser().parseFromString(plain, "image/svg+xml").documentElement;
  const [x, y, width, height] = picture.getAttribute("viewBox").split(" ").map(Number);
  picture.setAttribute("viewBox", [x, y, width, height - LEGEND].join(" "));
  for (const name of ["width", "height"]) picture.removeAttribute(name);
  return picture;
}

// What the answers of some rows rest on: a picture and a sentence for each.
async function explain(mine, rows) {
  const target = mine.model.targets.length > 1 ? byId("target").value : null;
  const place = (row) => byId("cards").querySelector(`[data-row="${row}"]`);
  try {
    const body = JSON.stringify({ job: mine.job.id, rows, target });
    const { explanations } = await askJson("/v1/explain", {
      method: "POST", body, headers: { "content-type": "application/json" }, signal: mine.stopper.signal,
    });
    if (mine !== current) return;
    explanations.forEach((one, i) => {
      const own = place(rows[i]);
      const picture = drawing(one.picture);
      picture.setAttribute("aria-label", `${one.id}: ${one.sentence}`);
      own.querySelector(".picture").replaceChildren(document.importNode(picture, true));
      own.querySelector(".because").textContent = one.sentence;
    });
  } catch (error) {
    if (error.name === "AbortError" || mine !== current) return;
    for (const row of rows) place(row).querySelector(".picture").textContent = error.message;
  }
}

async function save(path, type, name) {
  const content = await (await ask(path, { headers: { accept: type } })).blob();
  const link = element("a", { href: URL.createObjectURL(content), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// ------------------------------------------------------------ what people do

showTheme(stored("lookhops-theme"));
prefersDark.addEventListener("change", () => showTheme());
byId("theme").addEventListener("click", () => { showTheme(isDark() ? "light" : "dark"); store("lookhops-theme", root.dataset.theme); });
byId("model").addEventListener("change", showModel);
byId("token").addEventListener("submit", (event) => { event.preventDefault(); token = byId("token-text").value.trim(); start(); });
byId("ask").addEventListener("submit", (event) => { event.preventDefault(); submit(); });
byId("text").addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit(); });
byId("example").addEventListener("click", () => { byId("text").value = EXAMPLE; submit(); });
byId("stop").addEventListener("click", () => {
  current.stopper.abort();
  if (current.job) ask(`/v1/jobs/${current.job.id}`, { method: "DELETE" }).catch(() => {});
  byId("progress").hidden = true;
});
byId("more").addEventListener("click", () => showMore(current));
byId("target").addEventListener("change", () => {
  const rows = [...byId("cards").querySelectorAll(".card")].filter((one) => one.querySelector(".picture")).map((one) => Number(one.dataset.row));
  explainAll(current, rows);
});
byId("download").addEventListener("click", () => {
  const { id, name } = current.job;
  save(`/v1/jobs/${id}/result`, "text/csv", `${name.replace(/\.\w+$/, "")}-answers.csv`).catch((error) => showError(error.message));
});
byId("openapi").addEventListener("click", (event) => {
  if (!token) return; // the link will do
  event.preventDefault();
  save("/openapi.json", "application/json", "openapi.json").catch((error) => showError(error.message));
});

function takeFile(file) {
  if (!file || byId("ask").hidden) return;
  choose(byId("tab-file"));
  run(file.name, file);
}
byId("file").addEventListener("change", (event) => { takeFile(event.target.files[0]); event.target.value = ""; });
for (const kind of ["dragenter", "dragover"]) addEventListener(kind, (event) => { event.preventDefault(); document.body.classList.add("dropping"); });
addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dropping"); });
addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("dropping");
  takeFile(event.dataTransfer.files[0]);
});

start();
