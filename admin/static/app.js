// What a script adds to pages that work without it: live rows, dialogs in place,
// keys, copy. Everything comes from pages of ours, parsed as documents; no text
// from a delivery is ever put together as HTML here.
const root = document.documentElement;
const base = document.body.dataset.base || "";
const say = document.getElementById("say");
const $ = (s, el = document) => el.querySelector(s);
const $$ = (s, el = document) => [...el.querySelectorAll(s)];
root.classList.add("script");
for (const el of $$(".js[hidden]:not(.live):not([data-new])")) el.hidden = false;

function announce(text) {
  say.textContent = "";
  setTimeout(() => { say.textContent = text; }, 50);
}

let bar;
function busy(on) {
  clearTimeout(busy.timer);
  document.body.toggleAttribute("aria-busy", false);
  bar?.remove();
  if (on) busy.timer = setTimeout(() => {
    document.body.setAttribute("aria-busy", "true");
    bar = document.body.appendChild(Object.assign(document.createElement("div"), { className: "busy" }));
  }, 400);
}

async function load(url, init) {
  const r = await fetch(url, { credentials: "same-origin", ...init });
  return { r, doc: new DOMParser().parseFromString(await r.text(), "text/html") };
}

$(".nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

// Dialogs: the same page that opens without a script, shown in place.
let dialog, opener;
async function openDialog(url, from) {
  busy(true);
  const { r, doc } = await load(url).finally(() => busy(false));
  const part = $("[data-fragment]", doc);
  if (!part || r.redirected) { location.href = url; return; }
  opener = from;
  if (!dialog) {
    dialog = document.body.appendChild(document.createElement("dialog"));
    dialog.setAttribute("aria-labelledby", "dialog-title");
    dialog.addEventListener("close", () => { opener?.focus(); });
    dialog.addEventListener("click", (e) => {
      if (e.target === dialog || e.target.closest("[data-close]")) { e.preventDefault(); dialog.close(); }
    });
    dialog.addEventListener("submit", submit);
  }
  fill(part, url);
  dialog.showModal();
  $("h1", dialog)?.focus();
}

function fill(part, url) {
  const el = document.importNode(part, true);
  for (const form of $$("form[method=post]:not([action])", el)) form.action = url;
  dialog.replaceChildren(el);
  for (const j of $$(".js[hidden]", dialog)) j.hidden = false;
}

async function submit(e) {
  const form = e.target;
  if (form.method !== "post") return;
  e.preventDefault();
  const button = e.submitter;
  if (button) button.disabled = true;
  busy(true);
  try {
    const { r, doc } = await load(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) });
    const part = $("[data-fragment]", doc);
    if (!r.ok && part) { fill(part, form.action); $("[role=alert]", dialog)?.scrollIntoView(); return; }
    if (r.ok) { location.href = r.url; return; }
    dialog.close();
    document.replaceChild(document.importNode(doc.documentElement, true), document.documentElement);
  } finally {
    busy(false);
    if (button) button.disabled = false;
  }
}

document.addEventListener("click", (e) => {
  const a = e.target.closest("a[data-dialog]");
  if (a && !e.ctrlKey && !e.metaKey && !e.shiftKey && e.button === 0) {
    e.preventDefault();
    openDialog(a.href, a).catch(() => { location.href = a.href; });
    return;
  }
  const copy = e.target.closest("[data-copy], [data-copy-from]");
  if (copy) {
    const text = copy.dataset.copy ?? document.getElementById(copy.dataset.copyFrom)?.innerText ?? "";
    navigator.clipboard?.writeText(text).then(() => announce(say.dataset.copied), () => {});
    return;
  }
  const reveal = e.target.closest("[data-reveal]");
  if (reveal) {
    const field = document.getElementById(reveal.dataset.reveal);
    const shown = field.type === "password";
    field.type = shown ? "text" : "password";
    reveal.setAttribute("aria-pressed", String(shown));
  }
  for (const m of $$("details.menu[open]")) if (!m.contains(e.target)) m.open = false;
});

const all = $("[data-all]");
all?.addEventListener("change", () => { for (const c of $$("[data-rows] input[name=id]")) c.checked = all.checked; });
for (const d of $$("details.more")) {
  const form = d.closest("form");
  form?.addEventListener("submit", () => { for (const f of $$("input, select", form)) if (f.value === "") f.disabled = true; });
}

// Back to the list at the same row.
const rows = $("[data-rows]");
const spot = "acuse:" + location.pathname + location.search;
if (rows && history.scrollRestoration) {
  document.addEventListener("click", (e) => {
    const tr = e.target.closest("tr[data-id]");
    if (tr && e.target.closest("a")) try { sessionStorage.setItem(spot, tr.dataset.id); } catch {}
  });
  let id = null;
  try { id = sessionStorage.getItem(spot); sessionStorage.removeItem(spot); } catch {}
  const tr = id && $(`tr[data-id="${CSS.escape(id)}"]`, rows);
  if (tr) mark(tr, true);
}

function mark(tr, focus) {
  for (const x of $$("tr.here")) x.classList.remove("here");
  tr.classList.add("here");
  if (focus) { $(".c-type a", tr)?.focus({ preventScroll: true }); tr.scrollIntoView({ block: "nearest" }); }
}

function move(by) {
  const list = $$("tr[data-id]");
  if (!list.length) return;
  const at = list.findIndex((x) => x.classList.contains("here"));
  mark(list[Math.max(0, Math.min(list.length - 1, at < 0 ? 0 : at + by))], true);
}

// Times: as the server wrote them, how long ago, UTC.
const times = ["local", "ago", "utc"];
function showTimes(kind) {
  const rel = new Intl.RelativeTimeFormat(root.lang, { style: "short" });
  for (const t of $$("time[datetime]")) {
    t.dataset.was ??= t.textContent;
    const d = new Date(t.dateTime), s = (d - Date.now()) / 1000, a = Math.abs(s);
    t.textContent = kind === "utc" ? t.dateTime.slice(0, 19).replace("T", " ") + "Z" : kind === "local" ? t.dataset.was :
      a < 60 ? rel.format(Math.round(s), "second") : a < 3600 ? rel.format(Math.round(s / 60), "minute") :
      a < 86400 ? rel.format(Math.round(s / 3600), "hour") : rel.format(Math.round(s / 86400), "day");
  }
}

// Keys: only while no field has the focus; none changes anything by itself.
let went = 0;
document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented) return;
  if (e.target.closest("input, select, textarea, [contenteditable]") || dialog?.open) return;
  if (e.key === "Escape") {
    const menu = $("details.menu[open]");
    if (menu) { menu.open = false; $("summary", menu).focus(); return; }
    const back = $("[data-back]");
    if (back) { try { sessionStorage.setItem("acuse:" + new URL(back.href).pathname + new URL(back.href).search, location.pathname.split("/").pop()); } catch {} location.href = back.href; }
    return;
  }
  if (went && Date.now() - went < 1200) {
    went = 0;
    const to = { o: "/", d: "/deliveries", x: "/dead", r: "/rejections", s: "/sources", t: "/destinations" }[e.key];
    if (to) { e.preventDefault(); location.href = base + to; }
    return;
  }
  const here = $("tr.here");
  const act = {
    "?": () => openDialog(base + "/keyboard", document.activeElement),
    "/": () => ($("input[type=search]") ? $("input[type=search]").focus() : (location.href = base + "/deliveries")),
    g: () => { went = Date.now(); },
    j: () => move(1), k: () => move(-1),
    ArrowDown: here ? () => move(1) : null, ArrowUp: here ? () => move(-1) : null,
    Enter: here && document.activeElement === document.body ? () => $(".c-type a", here)?.click() : null,
    x: here ? () => { const c = $("input[name=id]", here); if (c) c.checked = !c.checked; } : null,
    r: () => {
      const a = $("#resend");
      if (a) openDialog(a.href, a);
      else if (here && $("input[name=id]", here)) openDialog(`${base}/deliveries/${here.dataset.id}/resend?back=${encodeURIComponent(location.pathname.slice(base.length) + location.search)}`, $(".c-type a", here));
    },
    c: () => $("[data-copy]")?.click(),
    b: () => { const el = $("#event"); if (el) { el.scrollIntoView(); $(".code", el)?.focus({ preventScroll: true }); } },
    "[": () => $("a[rel=prev]")?.click(), "]": () => $("a[rel=next]")?.click(),
    l: () => $("[data-toggle]")?.click(),
    u: () => { const k = times[(times.indexOf(root.dataset.times || "local") + 1) % 3]; root.dataset.times = k; showTimes(k); },
  }[e.key];
  if (act) { e.preventDefault(); act(); }
});

// Live: changes of known rows touch their cells, new rows come in only while the
// reader is at the top and holds nothing.
const live = "live" in document.body.dataset;
if (live) startLive();

function startLive() {
  const pill = $(".live"), known = () => new Set($$("[data-rows] tr[data-id]").map((x) => x.dataset.id));
  let source, on = true, timer, wait = 2000, waiting = 0, lost = "", announced = 0;
  const status = (kind) => {
    if (!pill) return;
    pill.hidden = false;
    pill.className = "live js " + kind;
    $("span", pill).textContent = kind === "on" ? pill.dataset.wordLive : kind === "pause" ? pill.dataset.wordPaused : pill.dataset.wordLost.replace("{0}", lost);
    $("button", pill).setAttribute("aria-pressed", String(kind !== "pause"));
  };
  const connect = () => {
    if (source || !on || document.hidden) return;
    source = new EventSource(base + "/api/v1/events");
    source.onopen = () => { lost = ""; wait = 2000; status("on"); };
    source.onerror = () => {
      lost ||= new Date().toLocaleTimeString(root.lang, { hour: "2-digit", minute: "2-digit" });
      status("off");
      if (source?.readyState === EventSource.CLOSED) { // refused: the browser does not try again by itself
        source = null;
        setTimeout(connect, wait);
        wait = Math.min(2 * wait, 60000);
      }
    };
    source.addEventListener("delivery", () => soon());
    source.addEventListener("reset", () => soon());
  };
  const close = () => { source?.close(); source = null; };
  const soon = () => { timer ??= setTimeout(() => { timer = null; refresh().catch(() => {}); }, 400); };
  document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else { connect(); if (on) soon(); } });
  pill?.addEventListener("click", () => { on = !on; if (on) { connect(); soon(); } else { close(); status("pause"); } });
  window.addEventListener("pagehide", close);
  connect();

  async function refresh() {
    const { r, doc } = await load(location.href);
    if (!r.ok || r.redirected) return;
    parts(doc);
    list(doc);
    for (const a of $$(".nav a")) {
      const fresh = $(`.nav a[href="${a.getAttribute("href")}"]`, doc);
      if (fresh && fresh.innerHTML !== a.innerHTML && a !== document.activeElement) a.replaceChildren(...document.importNode(fresh, true).childNodes);
    }
    document.title = doc.title;
    if (root.dataset.times && root.dataset.times !== "local") showTimes(root.dataset.times);
  }

  // parts replaces what changed, unless the reader is inside it, and keeps what was
  // opened open.
  function parts(doc) {
    for (const el of $$("[data-part]")) {
      const fresh = $(`[data-part="${el.dataset.part}"]`, doc);
      if (!fresh || el.contains(document.activeElement) && document.activeElement !== document.body) continue;
      const copy = document.importNode(fresh, true);
      const open = new Map($$("details[data-key]", el).map((d) => [d.dataset.key, d.open]));
      for (const d of $$("details[data-key]", copy)) if (open.has(d.dataset.key)) d.open = open.get(d.dataset.key);
      if (copy.innerHTML === el.innerHTML) continue;
      el.className = copy.className;
      el.replaceChildren(...copy.childNodes);
      if (el.dataset.part === "result") announce(el.textContent.trim());
    }
  }

  function list(doc) {
    if (!rows) return;
    const ids = known();
    const fresh = $$("[data-rows] tr[data-id]", doc);
    for (const tr of fresh) {
      const old = ids.has(tr.dataset.id) && $(`tr[data-id="${CSS.escape(tr.dataset.id)}"]`, rows);
      if (old) cells(old, tr);
    }
    const added = fresh.filter((tr) => !ids.has(tr.dataset.id));
    const button = $("[data-new]");
    const still = window.scrollY > 40 || $("input[name=id]:checked") || rows.contains(document.activeElement) || dialog?.open;
    if (!added.length) return;
    if (still && button) {
      waiting = added.length;
      button.hidden = false;
      button.textContent = waiting === 1 ? say.dataset.newOne : say.dataset.new.replace("{0}", waiting);
      button.onclick = () => { location.reload(); };
    } else {
      for (const tr of added.reverse()) rows.prepend(document.importNode(tr, true));
      const max = $$("[data-rows] tr[data-id]", doc).length;
      for (const tr of $$("tr[data-id]", rows).slice(Math.max(max, 1))) tr.remove();
    }
    if (Date.now() - announced > 10000) { announced = Date.now(); announce(say.dataset.changed); }
  }

  function cells(old, tr) {
    let changed = false;
    [...old.cells].forEach((cell, i) => {
      const other = tr.cells[i];
      if (!other || cell.classList.contains("pick") || cell.innerHTML === other.innerHTML || cell.contains(document.activeElement)) return;
      if (root.dataset.times && root.dataset.times !== "local" && cell.matches(".c-time, .c-next")) return;
      cell.className = other.className;
      cell.replaceChildren(...document.importNode(other, true).childNodes);
      changed = true;
    });
    if (changed) { old.classList.remove("changed"); void old.offsetWidth; old.classList.add("changed"); }
  }
}
