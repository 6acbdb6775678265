"use strict";
// DATA: classes, count, set (a name for these images), pictures (data URIs in a form; null where a server has them).

const $ = (id) => document.getElementById(id);

// Where answers are kept: by the server that this page came from, or in a form by this browser.
const server = {
  async ask(path, body) {
    let reply;
    try {
      reply = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    } catch {
      throw new Error("The program that keeps the answers does not reply. All answers so far are kept: start it again, " +
        "open the address that it shows, and give the same name.");
    }
    const said = await reply.json();
    if (!reply.ok) throw new Error(said.error);
    return said;
  },
  load: (labeller) => server.ask("load", { labeller }),
  add: (labeller, image, label, seconds) => server.ask("answer", { labeller, image, label, seconds }),
  undo: (labeller) => server.ask("undo", { labeller }),
  picture: (image) => `image/${image}.png`,
  kept: "The answers are kept. You may close this page.",
};
const browser = {
  answers: [],
  place: (labeller) => `flipopt-labels/${DATA.set}/${labeller}`,
  write(labeller) {
    browser.saved = false;
    try { localStorage.setItem(browser.place(labeller), JSON.stringify(browser.answers)); } catch { /* until the page is closed */ }
  },
  async load(labeller) {
    try { browser.answers = JSON.parse(localStorage.getItem(browser.place(labeller))) ?? []; } catch { browser.answers = []; }
    return browser.answers.map(([image, label]) => [image, label]);
  },
  async add(labeller, image, label, seconds) {
    browser.answers.push([image, label, seconds]);
    browser.write(labeller);
  },
  async undo(labeller) {
    const [image] = browser.answers.pop() ?? [null];
    browser.write(labeller);
    return image;
  },
  picture: (image) => DATA.pictures[image],
  kept: "Now download the answers, and send the file to whoever asked you.",
  saved: true,
  file(labeller) {
    const quoted = /[",]/.test(labeller) ? `"${labeller.replaceAll('"', '""')}"` : labeller;
    const lines = browser.answers.map(([image, label, seconds]) => `${quoted},${image},${label},${seconds.toFixed(3)}\n`);
    return `labeller,image,label,seconds\n${lines.join("")}`;
  },
  download(labeller) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([browser.file(labeller)], { type: "text/csv" }));
    link.download = `labels-${labeller.replace(/[^\p{L}\p{N}_-]/gu, "_")}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    browser.saved = true;
  },
};
const store = DATA.pictures ? browser : server;

// An order of the images that the name decides, so that everybody has another one, and the same again.
function shuffled(name) {
  let state = 2166136261;
  for (const character of `${DATA.set}/${name}`) state = Math.imul(state ^ character.codePointAt(0), 16777619);
  const chance = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  const order = Array.from({ length: DATA.count }, (_, image) => image);
  for (let last = order.length - 1; last > 0; last--) {
    const other = Math.floor(chance() * (last + 1));
    [order[last], order[other]] = [order[other], order[last]];
  }
  return order;
}

let labeller = "", todo = [], given = [], busy = 0, ready = false, paused = false, since = 0, before = 0;
let current = Promise.resolve();

const seconds = () => (before + (paused ? 0 : performance.now() - since)) / 1000;

function show() {
  const over = todo.length === 0;
  $("start").hidden = true;
  $("work").hidden = over;
  $("end").hidden = !over;
  $("kept").textContent = store.kept;
  $("done").textContent = `${given.length} of ${DATA.count}`;
  $("progress").value = given.length;
  $("undo").disabled = given.length === 0;
  for (const button of document.querySelectorAll(".download")) button.hidden = store !== browser;
  $("image").hidden = paused;
  $("resume").hidden = !paused;
  $("pause").disabled = paused;
  for (const button of $("classes").children) button.disabled = paused;
}

// The image that is next; no answer is taken, and no time counts, before it is to be seen.
async function next() {
  ready = false;
  before = 0;
  show();
  if (todo.length === 0) return;
  $("image").src = store.picture(todo[0]);
  if (todo.length > 1) new Image().src = store.picture(todo[1]);
  try { await $("image").decode(); } catch { throw new Error("This image could not be loaded: reload the page."); }
  since = performance.now();
  ready = true;
}

function halt(now) {
  if ($("work").hidden || paused === now) return;
  if (now) before += performance.now() - since;
  paused = now;
  since = performance.now();
  show();
}

// One thing at a time, and nothing is shown as done before it is kept. An answer that comes too soon is dropped, since its
// image cannot have been seen; what "waits" is done in turn.
function alone(act, waits = false) {
  if (busy && !waits) return;
  busy += 1;
  current = current.then(async () => {
    $("fault").textContent = "";
    try { await act(); } catch (error) { $("fault").textContent = error.message; }
    busy -= 1;
  });
}

const answer = (label) => alone(async () => {
  if (paused || !ready || todo.length === 0) return;
  await store.add(labeller, todo[0], label, Math.round(1000 * seconds()) / 1000);
  given.push([todo.shift(), label]);
  await next();
});

const undo = () => alone(async () => {
  if (given.length === 0) return;
  const last = await store.undo(labeller);
  given = given.filter(([image]) => image !== last);
  if (last !== null) todo.unshift(last);
  paused = false;
  await next();
}, true);

const begin = (name) => alone(async () => {
  given = await store.load(name);
  labeller = name;
  const known = new Set(given.map(([image]) => image));
  todo = shuffled(labeller).filter((image) => !known.has(image));
  try { sessionStorage.setItem("flipopt-labeller", labeller); } catch { /* asked again after a reload */ }
  await next();
});

$("begin").addEventListener("submit", (event) => {
  event.preventDefault();
  const name = $("name").value.trim();
  if (!name || /^[=+\-@]/.test(name)) $("fault").textContent = "A name must not be empty or begin with = + - @.";
  else begin(name);
});
for (const [label, name] of DATA.classes.entries()) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = name;
  if (label < 10 && name !== String(label)) {
    const key = document.createElement("kbd");
    key.textContent = label;
    button.append(" ", key);
  }
  button.addEventListener("click", () => answer(label));
  $("classes").append(button);
}
$("classes").classList.toggle("words", DATA.classes.some((name) => name.length > 2));
$("undo").addEventListener("click", undo);
$("undo-last").addEventListener("click", undo);
$("pause").addEventListener("click", () => halt(true));
$("resume").addEventListener("click", () => halt(false));
for (const button of document.querySelectorAll(".download")) button.addEventListener("click", () => browser.download(labeller));
document.addEventListener("keydown", (event) => {
  if ($("start").hidden === false || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
  if (/^[0-9]$/.test(event.key) && Number(event.key) < DATA.classes.length) answer(Number(event.key));
  else if (event.key === "Backspace" || event.key === "u") undo();
  else if (event.key === "p") halt(!paused);
  else return;
  event.preventDefault();
});
document.addEventListener("visibilitychange", () => { if (document.hidden) halt(true); });
window.addEventListener("beforeunload", (event) => { if (store === browser && !browser.saved) event.preventDefault(); });

let last = null;
try { last = sessionStorage.getItem("flipopt-labeller"); } catch { /* then the name is asked for */ }
if (last && store === server) begin(last);
else $("name").focus();
