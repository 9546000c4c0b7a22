// What makes a page answer: charts, tables that sort and filter, methods switched on and off.
(() => {
"use strict";
const every = (query, from = document) => [...from.querySelectorAll(query)];
const views = new Map();   // figure element -> Vega view
const state = {off: new Set(), only: null, pointed: null};
let charts, waiting;

// ---- charts ------------------------------------------------------------------------------
const room = el => el.clientWidth || (every(".chart[data-chart]").find(
  e => e.clientWidth && e.dataset.square === el.dataset.square) || {}).clientWidth || 320;

function size(el, spec) {
  const wide = Math.max(120, Math.min(room(el), +el.dataset.most || 1e4));
  return {width: wide, height: el.dataset.square ? wide : spec.height};
}

// Tables come as columns, with each word once.
function unpacked(value) {
  if (Array.isArray(value)) return value.map(unpacked);
  if (value === null || typeof value !== "object") return value;
  const made = {};
  for (const [key, one] of Object.entries(value)) if (key !== "columns") made[key] = unpacked(one);
  if (!Array.isArray(value.columns)) { if ("columns" in value) made.columns = value.columns; return made; }
  made.values = value.columns[0].cells.map((_, row) => Object.fromEntries(
    value.columns.map(({name, words, cells}) => [name, words ? words[cells[row]] : cells[row]])));
  return made;
}

// The library of the charts is packed; it is unpacked once, when the first chart is drawn.
let library;
function loaded() {
  library ??= (async () => {
    const packed = Uint8Array.from(atob(document.getElementById("bundle").textContent), c => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
  })();
  return library;
}

function draw(el) {
  if (views.has(el) || !waiting.delete(el)) return Promise.resolve();
  const spec = unpacked(charts.specs[el.dataset.chart]);
  Object.assign(spec, size(el, spec));
  for (const param of spec.params || []) delete param.bind;
  if (el.dataset.only) for (const param of spec.params) if (param.name === "only") param.value = el.dataset.only;
  views.set(el, null);
  const axisY = {...charts.config.axisY, labelLimit: 0.42 * spec.width};
  const config = {...charts.config, axisY};
  return loaded().then(() => vegaEmbed(el, spec, {mode: "vega-lite", renderer: "svg", actions: false, config, tooltip: {theme: "custom"}}))
    .then(({view}) => {
      views.set(el, view);
      signals(view);
      if (el.dataset.only) return;
      const method = item => item && item.datum && item.datum.method;
      view.addEventListener("pointerover", (_, item) => point(method(item) || null));
      view.addEventListener("pointerout", () => point(null));
      view.addEventListener("click", (_, item) => { if (method(item)) isolate(method(item)); });
    })
    .catch(error => { el.textContent = `This chart could not be drawn: ${error.message}`; });
}

function set(view, name, value) { try { view.signal(name, value); } catch { /* a chart without methods */ } }

function signals(view) {
  if (!view) return;
  const one = state.pointed || state.only;
  set(view, "focus", one ? [one] : []);
  set(view, "off", [...state.off]);
  view.runAsync();
}

// One after the other in the order of the page, so that it answers meanwhile.
function drawAll() {
  const [el] = waiting;
  if (el) draw(el).then(() => setTimeout(drawAll));
  else document.documentElement.dataset.drawn = "yes";
}

const resized = new ResizeObserver(entries => {
  for (const {target} of entries) {
    const view = views.get(target);
    if (!view || !target.clientWidth) continue;
    const {width, height} = size(target, {height: view.height()});
    if (Math.abs(view.width() - width) > 1) view.width(width).height(height).runAsync();
  }
});

// ---- methods -----------------------------------------------------------------------------
function point(method) { if (state.pointed !== method) { state.pointed = method; show(); } }
function isolate(method) { state.only = state.only === method ? null : method; state.pointed = null; state.off.delete(method); show(); }

function show() {
  for (const view of views.values()) signals(view);
  for (const el of every("[data-method]")) {
    const name = el.dataset.method;
    el.classList.toggle("off", state.off.has(name) || (state.only !== null && state.only !== name && el.matches("figure")));
    el.classList.toggle("dim", state.only !== null && state.only !== name);
  }
  for (const chip of every(".chip")) {
    chip.querySelector("button").setAttribute("aria-pressed", state.only === chip.dataset.name);
    chip.querySelector("input").checked = !state.off.has(chip.dataset.name);
  }
  const all = document.getElementById("all-methods");
  if (all) all.hidden = !state.off.size && state.only === null;
}

// ---- tables ------------------------------------------------------------------------------
function value(cell) {
  const text = cell ? (cell.dataset.value ?? cell.textContent).trim() : "";
  const number = parseFloat(text.replace(/[−–](?=[\d.])/g, "-").replace(/,/g, ""));
  return Number.isNaN(number) ? (text === "–" || text === "" ? null : text.toLowerCase()) : number;
}

function sortable(table) {
  const heads = every("thead tr:last-child th", table);
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button"; button.className = "sort";
    button.append(...head.childNodes); head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach(one => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      for (const body of table.tBodies) {
        const rows = [...body.rows];
        rows.map((row, i) => [value(row.cells[column]), i, row])
          .sort(([a, i], [b, j]) => {
            if (a === null || b === null) return (a === null) - (b === null) || i - j;
            const way = typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1;
            return way ? (up ? way : -way) : i - j;
          })
          .forEach(([, , row]) => body.append(row));
      }
    });
  });
}

function filters(input) {
  const table = document.getElementById(input.dataset.table);
  const told = input.parentElement.querySelector("output");
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0, all = 0;
    for (const row of every("tbody tr", table)) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every(word => text.includes(word));
      shown += !row.hidden; all += 1;
    }
    told.textContent = words.length ? `${shown} of ${all}` : "";
  });
}

// ---- the rest ----------------------------------------------------------------------------
function copies(button) {
  button.addEventListener("click", async () => {
    const code = button.parentElement.querySelector("code");
    try { await navigator.clipboard.writeText(code.textContent); }
    catch {
      const range = document.createRange(); range.selectNodeContents(code);
      getSelection().removeAllRanges(); getSelection().addRange(range);
      document.execCommand("copy");
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
}

function start() {
  const holder = document.getElementById("charts");
  charts = holder ? JSON.parse(holder.textContent) : {specs: {}};
  for (const view of views.values()) if (view) view.finalize();
  views.clear(); resized.disconnect();
  waiting = new Set(every(".chart[data-chart]"));
  for (const el of waiting) resized.observe(el);
  every("table.sortable").forEach(sortable);
  every("input[data-table]").forEach(filters);
  every(".command button").forEach(copies);
  for (const chip of every(".chip")) {
    const name = chip.dataset.name, button = chip.querySelector("button");
    chip.querySelector("input").addEventListener("change", e => {
      state.off[e.target.checked ? "delete" : "add"](name);
      if (state.only === name) state.only = null;
      show();
    });
    button.addEventListener("click", () => isolate(name));
    chip.addEventListener("pointerenter", e => { if (e.pointerType === "mouse") point(name); });
    chip.addEventListener("pointerleave", () => point(null));
  }
  const all = document.getElementById("all-methods");
  if (all) all.addEventListener("click", () => { state.off.clear(); state.only = null; show(); });
  if (state.only !== null || state.off.size) show();
  drawAll();
}

// ---- live: the server says what changed ----------------------------------------------------
function live(place) {
  let version = +place.dataset.version, status = place.textContent;
  const again = () => setTimeout(poll, 2000);
  function poll() {
    fetch(`state?after=${version}`).then(reply => {
      if (reply.status === 204) return null;
      if (!reply.ok) throw new Error(reply.status);
      return reply.json();
    }).then(fresh => {
      if (fresh) {
        version = fresh.version;
        status = fresh.status;
        const open = new Set(every("details[open]").map(d => d.id));
        const chosen = new Set(every(".tabs>input:checked").map(i => i.id));
        const filled = new Map(every("input[data-table]").map(i => [i.dataset.table, i.value]));
        const scroll = window.scrollY;
        document.getElementById("page").innerHTML = fresh.body;
        document.getElementById("charts").textContent = fresh.charts;
        start();
        for (const id of open) if (id && document.getElementById(id)) document.getElementById(id).open = true;
        for (const id of chosen) if (document.getElementById(id)) document.getElementById(id).checked = true;
        for (const [id, text] of filled) {
          const input = every("input[data-table]").find(i => i.dataset.table === id);
          if (input && text) { input.value = text; input.dispatchEvent(new Event("input")); }
        }
        window.scrollTo(0, scroll);
      }
      place.textContent = status;
      again();
    }).catch(() => { place.textContent = "The server was stopped."; });
  }
  poll();
}

addEventListener("beforeprint", () => { for (const el of [...waiting]) draw(el); });
document.documentElement.classList.add("scripted");
start();
const place = document.getElementById("live");
if (place) live(place);
})();
