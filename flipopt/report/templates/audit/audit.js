const ROWS = DATA.rows, COUNT = ROWS.row.length;
const STATUS = {CONVERGED: "verified closest", ON_BOUNDARY: "on the boundary"};
const nameOf = (k) => k < 0 ? "–" : DATA.classes[k];
const statusOf = (k) => STATUS[ROWS.status[k]] ?? ROWS.status[k].toLowerCase().replace("_", " ");
const wrong = (k) => ROWS.label !== null && ROWS.predicted[k] >= 0 && ROWS.label[k] !== ROWS.predicted[k];
const provedShare = (k) => ROWS.proved[k] ? 1 : ROWS.lower[k] === null || ROWS.distance[k] === null ? null : Math.min(1, ROWS.lower[k] / ROWS.distance[k]);
const proof = (k) => ROWS.proved[k] ? "closest" : provedShare(k) === null ? "–" : (100 * provedShare(k)).toFixed(1) + "%";
const entries = [...Array(COUNT).keys()];
const place = new Map(ROWS.row.map((row, k) => [row, k]));
const long = (value) => value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e5);
const digits = (value) => value === null ? "–" : long(value) ? value.toExponential(2) : Math.abs(value) >= 1000 ? value.toFixed(0) : value.toPrecision(3);
const shortened = (value) => long(value) ? value.toExponential() : String(Number(value.toPrecision(3)));
const percent = (value) => value === null ? "–" : value >= 0.9995 && value < 1 ? ">99.9%" : (100 * value).toFixed(1) + "%";
const sorted = (values) => values.filter((value) => value !== null).sort((a, b) => a - b);
const used = (column) => [...new Set(column)].filter((k) => k >= 0).sort((a, b) => a - b);

function options(select, values, words, all = "all") {
  select.append(element("option", {value: ""}, all), ...values.map((value) => element("option", {value}, words(value))));
}

/* Scales, grid and labels of a chart as wide as its place, so that text is as large on a phone as on a desk. */
function chart(svg, {x, y, height = 260, left = 46, log = false, xlabel = "", ylabel = "", xformat = shortened, yformat = shortened, yticks = null}) {
  const width = Math.max(260, Math.min(900, svg.clientWidth || svg.parentNode.clientWidth || 640)), right = width - 20, bottom = height - 40, top = ylabel ? 24 : 12;
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const map = log ? Math.log10 : (value) => value;
  const scale = (from, to, low, high) => (value) => from + (to - from) * (map(value) - map(low)) / ((map(high) - map(low)) || 1);
  const X = scale(left, right, ...x), Y = (value) => bottom + (top - bottom) * (value - y[0]) / ((y[1] - y[0]) || 1);
  for (const at of log ? powers(...x) : ticks(...x, width < 480 ? 4 : 8)) {
    svg.append(element("line", {class: "grid", x1: X(at), x2: X(at), y1: top, y2: bottom}));
    svg.append(element("text", {x: X(at), y: bottom + 16, "text-anchor": "middle"}, xformat(at)));
  }
  for (const at of yticks ?? ticks(...y, 4)) {
    svg.append(element("line", {class: "grid", x1: left, x2: right, y1: Y(at), y2: Y(at)}));
    svg.append(element("text", {x: left - 6, y: Y(at) + 4, "text-anchor": "end"}, yformat(at)));
  }
  svg.append(element("text", {x: (left + right) / 2, y: height - 6, "text-anchor": "middle"}, xlabel));
  if (ylabel) svg.append(element("text", {x: 2, y: 9}, ylabel));
  return {X, Y, left, right, bottom, width};
}

function ticks(low, high, most) {
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough || 1));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(Number((k * step).toPrecision(12)));
  return found;
}

function powers(low, high) {
  const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
  const step = Math.max(1, Math.ceil((last - first) / 7));
  const found = [];
  for (let k = first; k <= last; k += step) found.push(10 ** k);
  return found.length ? found : [low, high];
}

const path = (points) => points.map(([x, y], k) => `${k ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

function key(place, entries) {
  place.replaceChildren(...entries.map(([colour, words]) => {
    const item = element("span", {}), mark = element("i", {});
    mark.style.background = colour;
    item.append(mark, words);
    return item;
  }));
}

/* Of all inputs, at every distance: those with a flip within it, those proved to have none, and the rest. */
function drawCurve() {
  const svg = get("curve");
  if (!svg) return;
  const chosen = get("curve-class").value, log = get("curve-axis").value === "log";
  const mine = entries.filter((k) => ROWS.distance[k] !== null && (chosen === "" || ROWS.predicted[k] === Number(chosen)));
  const far = sorted(mine.map((k) => ROWS.distance[k])), proved = ROWS.lower === null ? [] : sorted(mine.map((k) => ROWS.lower[k]));
  if (!far.length) return;
  const least = Math.max(1e-12, quantile(proved.length ? proved : far, 0.01)), most = quantile(far, log ? 1 : 0.98) * 1.05 || 1;
  const {X, Y, left, right, bottom} = chart(svg, {x: [log ? Math.min(least, most / 10) : 0, most], y: [0, 1], log, xlabel: "size of the change", yformat: (v) => 100 * v + "%", yticks: [0, 0.25, 0.5, 0.75, 1]});
  const steps = (values, from) => {
    const points = [[left, Y(from(0))]];
    values.forEach((value, k) => { const x = Math.min(right, Math.max(left, X(value))); points.push([x, Y(from(k / values.length))], [x, Y(from((k + 1) / values.length))]); });
    return [...points, [right, points[points.length - 1][1]]];
  };
  const draw = (points, colour, end) => svg.prepend(element("path", {d: path(points) + `L${right} ${end}L${left} ${end}Z`, fill: colour}));
  if (proved.length) draw(steps(proved, (share) => 1 - share), "var(--sure)", bottom);
  draw(steps(far, (share) => 1 - share), "var(--unsure)", bottom);
  draw([[left, 12], [right, 12]], "var(--two)", bottom);
  key(get("curve-key"), [["var(--two)", "a flip was found within this change"], ["var(--unsure)", proved.length ? "no flip found, none excluded" : "no flip found"], ...(proved.length ? [["var(--sure)", "proved: no flip within this change"]] : [])]);
}

function drawBoxes() {
  const svg = get("boxes");
  if (!svg) return;
  const groups = used(ROWS.predicted).map((k) => {
    const mine = entries.filter((e) => ROWS.predicted[e] === k && ROWS.distance[e] !== null);
    return {k, far: sorted(mine.map((e) => ROWS.distance[e])), proved: ROWS.lower === null ? [] : sorted(mine.map((e) => ROWS.lower[e]))};
  }).filter((group) => group.far.length).slice(0, 40);
  const longest = Math.max(3, ...groups.map((group) => nameOf(group.k).length));
  const left = Math.min(150, 14 + 7 * longest), height = 22 * groups.length + 56;
  const top = Math.max(...groups.map((group) => quantile(group.far, 0.95))) * 1.05 || 1;
  const {X, right} = chart(svg, {x: [0, top], y: [0, 1], height, left, xlabel: "distance to the flip", yticks: []});
  groups.forEach((group, at) => {
    const y = 22 * at + 24, [a, b, c, d, e] = [0.05, 0.25, 0.5, 0.75, 0.95].map((q) => Math.min(right, X(quantile(group.far, q))));
    const words = nameOf(group.k), cut = Math.floor((left - 14) / 7);
    const label = element("text", {x: left - 8, y: y + 4, "text-anchor": "end"}, words.length > cut ? words.slice(0, cut - 1) + "…" : words);
    label.append(element("title", {}, words));
    svg.append(label, element("line", {x1: a, x2: e, y1: y, y2: y, stroke: "var(--one)"}));
    svg.append(element("rect", {x: b, y: y - 7, width: Math.max(d - b, 1), height: 14, fill: "var(--one)", opacity: 0.35}));
    svg.append(element("line", {x1: c, x2: c, y1: y - 7, y2: y + 7, stroke: "var(--one)", "stroke-width": 3}));
    if (group.proved.length) svg.append(element("circle", {cx: X(quantile(group.proved, 0.5)), cy: y, r: 3.5, fill: "var(--sure)"}));
  });
}

/* The table of inputs. */
const COLUMNS = [
  {id: "row", title: "row", value: (k) => ROWS.row[k], text: (k) => String(ROWS.row[k])},
  {id: "predicted", title: "class", value: (k) => ROWS.predicted[k], text: (k) => nameOf(ROWS.predicted[k])},
  ...(ROWS.label === null ? [] : [{id: "label", title: "label", value: (k) => ROWS.label[k], text: (k) => nameOf(ROWS.label[k])}]),
  {id: "other", title: "flips to", value: (k) => ROWS.other[k], text: (k) => nameOf(ROWS.other[k])},
  {id: "distance", title: "distance", value: (k) => ROWS.distance[k], text: (k) => digits(ROWS.distance[k])},
  ...(ROWS.lower === null ? [] : [{id: "lower", title: "no flip within", value: (k) => ROWS.lower[k], text: (k) => digits(ROWS.lower[k])}]),
  ...(ROWS.proved === null ? [] : [{id: "proved", title: "proved", value: provedShare, text: proof}]),
  {id: "softmax", title: "softmax", value: (k) => ROWS.softmax[k], text: (k) => percent(ROWS.softmax[k])},
  {id: "status", title: "status", value: statusOf, text: statusOf},
];
const listing = {sort: "distance", down: false, most: 25};

function matching() {
  const [i, j, verdict] = ["filter-class", "filter-other", "filter-status"].map((id) => get(id).value);
  const only = get("filter-wrong")?.checked ?? false;
  const column = COLUMNS.find((one) => one.id === listing.sort);
  const order = (a, b) => {
    const [one, two] = [column.value(a), column.value(b)];
    if (one === null || two === null) return (one === null) - (two === null); // no number: last, either way
    return (listing.down ? -1 : 1) * (typeof one === "string" ? one.localeCompare(two) : one - two);
  };
  return entries.filter((k) => (i === "" || ROWS.predicted[k] === Number(i)) && (j === "" || ROWS.other[k] === Number(j))
    && (verdict === "" || ROWS.status[k] === verdict) && (!only || wrong(k))).sort(order);
}

function drawTable() {
  const found = matching(), shown = found.slice(0, listing.most);
  const head = element("tr", {});
  head.append(...COLUMNS.map((column) => {
    const mine = listing.sort === column.id;
    const cell = element("th", {scope: "col", ...(mine ? {"aria-sort": listing.down ? "descending" : "ascending"} : {})});
    const button = element("button", {type: "button", "data-sort": column.id}, column.title);
    button.addEventListener("click", () => {
      listing.down = mine && !listing.down;
      listing.sort = column.id;
      drawTable();
      document.querySelector(`[data-sort="${column.id}"]`).focus();
    });
    cell.append(button);
    return cell;
  }));
  get("table").tHead.replaceChildren(head);
  get("table").tBodies[0].replaceChildren(...shown.map((k) => {
    const line = element("tr", {});
    line.append(...COLUMNS.map((column) => {
      const cell = element("td", column.id === "label" && wrong(k) ? {class: "wrong"} : {});
      cell.append(column.id === "row" ? element("button", {type: "button", class: "row", "data-row": ROWS.row[k]}, column.text(k)) : column.text(k));
      return cell;
    }));
    line.addEventListener("click", (event) => { if (!event.target.closest("button")) show(k); });
    return line;
  }));
  get("shown").textContent = `${shown.length} of ${found.length} shown` + (found.length < COUNT ? `, of ${COUNT} in all` : "");
  get("more").hidden = shown.length === found.length;
}

/* One input: its line to the flip. */
function show(k) {
  const stored = DATA.details[ROWS.row[k]], body = get("detail-body");
  const [mine, other] = [nameOf(ROWS.predicted[k]), nameOf(ROWS.other[k])];
  const found = ROWS.distance[k] !== null;
  body.replaceChildren(element("h2", {id: "detail-title"}, found ? `Row ${ROWS.row[k]}: “${mine}” becomes “${other}” at ${digits(ROWS.distance[k])}` : `Row ${ROWS.row[k]}: no flip was found`));
  const facts = [`softmax ${percent(ROWS.softmax[k])}`, DATA.statuses[ROWS.status[k]]];
  if (ROWS.label !== null) facts.unshift(wrong(k) ? `labelled “${nameOf(ROWS.label[k])}”: a mistake` : `labelled “${nameOf(ROWS.label[k])}”`);
  if (ROWS.proved !== null && ROWS.proved[k]) facts.push("proved: there is no nearer one");
  else if (ROWS.lower !== null && ROWS.lower[k] !== null) facts.push(`no flip within ${digits(ROWS.lower[k])} (proved)`);
  body.append(element("p", {class: "note"}, facts.join("; ")));
  if (stored === undefined) {
    body.append(element("p", {}, found ? `The page keeps the lines of the ${Object.keys(DATA.details).length} most notable inputs; this is none of them.` : ""));
  } else {
    if (stored.images) {
      const strip = element("div", {class: "strip"});
      for (const [what, words] of [["before", "input"], ["after", "flip"], ["difference", "± " + stored.images.largest]]) {
        const figure = element("figure", {});
        figure.append(element("img", {src: stored.images[what], alt: words}), element("figcaption", {}, words));
        strip.append(figure);
      }
      body.append(strip);
    }
    const figure = element("figure", {class: "chart"}), svg = element("svg", {id: "line", role: "img", "aria-label": "Probabilities along the line from the input to its flip and beyond"});
    const legend = element("figcaption", {class: "key"});
    figure.append(element("h3", {}, "Along the line from the input to its flip, and half as far again"), svg, legend);
    body.append(figure);
    if (stored.changes) body.append(changesTable(stored.changes));
    if (!get("detail").open) get("detail").showModal();
    drawLine(svg, stored, found ? ROWS.distance[k] : 1);
    key(legend, [["var(--one)", `probability of “${mine}”`], ["var(--two)", `probability of “${other}”`]]);
  }
  if (!get("detail").open) get("detail").showModal();
}

function drawLine(svg, stored, distance) {
  const last = stored.mine.length - 1, at = (k) => DATA.alphas[k] * distance;
  const all = [...stored.mine, ...stored.others], least = Math.min(...all), most = Math.max(...all), room = 0.1 * (most - least);
  const y = most - least > 0.5 || most === least ? [0, 1] : [Math.max(0, least - room), Math.min(1, most + room)];
  const {X, Y, bottom} = chart(svg, {x: [0, at(last)], y, height: 220, xlabel: "distance from the input"});
  svg.append(element("line", {x1: X(distance), x2: X(distance), y1: 12, y2: bottom, stroke: "var(--ink)", "stroke-dasharray": "4 3"}));
  svg.append(element("text", {x: X(distance) + 5, y: 24}, "flip"));
  for (const [what, colour] of [["mine", "var(--one)"], ["others", "var(--two)"]]) {
    svg.append(element("path", {d: path(stored[what].map((value, k) => [X(at(k)), Y(value)])), fill: "none", stroke: colour, "stroke-width": 2, "data-of": what}));
  }
}

function changesTable(changes) {
  const scroll = element("div", {class: "scroll"}), made = element("table", {}), head = element("tr", {});
  head.append(...["feature", "from", "to", "spreads"].map((title) => element("th", {scope: "col"}, title)));
  made.append(head, ...changes.map((cells) => {
    const line = element("tr", {});
    line.append(...cells.map((cell) => element("td", {}, cell)));
    return line;
  }));
  scroll.append(made);
  return scroll;
}

/* Other charts, each where its section has one. */
function drawTrust() {
  if (!get("roc") || !DATA.trust) return;
  const predictors = [["distance", "var(--one)"], ["softmax", "var(--two)"]];
  const roc = chart(get("roc"), {x: [0, 1], y: [0, 1], height: 300, xlabel: "share of right answers flagged", ylabel: "share of mistakes flagged", xformat: (v) => 100 * v + "%", yformat: (v) => 100 * v + "%"});
  get("roc").append(element("line", {x1: roc.X(0), y1: roc.Y(0), x2: roc.X(1), y2: roc.Y(1), class: "grid", "stroke-dasharray": "4 3"}));
  for (const [what, colour] of predictors) get("roc").append(element("path", {d: path(DATA.trust[what].roc.map(([x, y]) => [roc.X(x), roc.Y(y)])), fill: "none", stroke: colour, "stroke-width": 2}));
  key(get("roc-key"), predictors.map(([what, colour]) => [colour, `${what}, area ${DATA.trust[what].auc}`]));
  const bins = DATA.trust.distance.bins, most = Math.max(...["distance", "softmax"].flatMap((what) => DATA.trust[what].bins.map((bin) => bin[2]))) * 1.1 || 1;
  const bars = chart(get("bins"), {x: [0, bins.length], y: [0, most], height: 300, xlabel: "inputs in equal parts, the most doubtful first", ylabel: "share of mistakes", xformat: (v) => String(v), yformat: (v) => (100 * v).toFixed(0) + "%"});
  predictors.forEach(([what, colour], side) => DATA.trust[what].bins.forEach(([share, low, high], k) => {
    const wide = (bars.X(1) - bars.X(0)) * 0.36, x = bars.X(k) + (bars.X(1) - bars.X(0)) * (0.12 + 0.4 * side);
    get("bins").append(element("rect", {x, y: bars.Y(share), width: wide, height: Math.max(0, bars.Y(0) - bars.Y(share)), fill: colour, opacity: 0.8}));
    get("bins").append(element("line", {x1: x + wide / 2, x2: x + wide / 2, y1: bars.Y(low), y2: bars.Y(high), stroke: "var(--ink)", opacity: 0.6}));
  }));
}

function drawShares() {
  if (!get("shares") || !DATA.shares) return;
  const values = DATA.shares, height = 220;
  const {X, Y} = chart(get("shares"), {x: [0, values.length], y: [0, 1], height, xlabel: "directions, the strongest first", ylabel: "share of the changes explained", yformat: (v) => 100 * v + "%", yticks: [0, 0.25, 0.5, 0.75, 1]});
  let sum = 0;
  const points = [[X(0), Y(0)]];
  values.forEach((value, k) => { sum += value; points.push([X(k + 1), Y(sum)]); });
  get("shares").append(element("path", {d: path(points), fill: "none", stroke: "var(--one)", "stroke-width": 2}));
}

function build() {
  if (get("curve")) {
    options(get("curve-class"), used(ROWS.predicted), nameOf);
    get("curve-axis").value = DATA.log ? "log" : "linear";
    for (const id of ["curve-class", "curve-axis"]) get(id).addEventListener("change", drawCurve);
  }
  options(get("filter-class"), used(ROWS.predicted), nameOf);
  options(get("filter-other"), used(ROWS.other), nameOf);
  options(get("filter-status"), [...new Set(ROWS.status)], (value) => statusOf(ROWS.status.indexOf(value)));
  for (const id of ["filter-class", "filter-other", "filter-status", "filter-wrong"]) get(id)?.addEventListener("change", () => { listing.most = 25; drawTable(); });
  get("more").addEventListener("click", () => { listing.most += 100; drawTable(); });
  document.addEventListener("click", (event) => {
    const row = event.target.closest("button.row"), cell = event.target.closest(".matrix button");
    if (row && place.has(Number(row.dataset.row))) show(place.get(Number(row.dataset.row)));
    if (cell) {
      [get("filter-class").value, get("filter-other").value, get("filter-status").value] = [cell.dataset.i, cell.dataset.j, ""];
      listing.most = 25;
      drawTable();
      get("filters").scrollIntoView();
    }
    if (event.target === get("detail")) get("detail").close(); // beside it
  });
  const drawAll = () => { drawCurve(); drawBoxes(); drawTrust(); drawShares(); };
  let waiting;
  window.addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(drawAll, 150); });
  drawAll();
  drawTable();
}

build();
