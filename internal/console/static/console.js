// The console's only module. Every page works without it: it copies, opens
// dialogs, puts times into the reader's zone, follows what changes, and knows
// keys. It sets text and attributes only; markup comes from our own origin, by
// `fragment`, and from nowhere else.

const policy = window.trustedTypes?.createPolicy("fragment", { createHTML: (text) => text });

// fragment parses markup that our own server answered.
const fragment = (text) => new DOMParser().parseFromString(policy ? policy.createHTML(text) : text, "text/html");

const $$ = (selector, from = document) => [...from.querySelectorAll(selector)];
const status = (text) => { const line = document.getElementById("live"); if (line) line.textContent = text; };

// Times: the server writes UTC; the reader sees the same format in their own zone, as in
// 2026-05-31 16:03:07 GMT+2, and UTC in the title.
const timeFormat = new Intl.DateTimeFormat("en", {
  year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit",
  hourCycle: "h23", timeZoneName: "short",
});
function localTime(date) {
  const p = Object.fromEntries(timeFormat.formatToParts(date).map((part) => [part.type, part.value]));
  return `${p.year}-${p.month}-${p.day} ${p.hour}:${p.minute}:${p.second} ${p.timeZoneName}`;
}
function localTimes(from) {
  for (const time of $$("time[data-local]", from)) {
    time.title = time.textContent;
    time.textContent = localTime(new Date(time.dateTime));
    time.removeAttribute("data-local");
  }
}

// Copying: the clipboard is missing on plain http beyond this machine.
async function copy(button) {
  const source = document.getElementById(button.dataset.copy);
  const text = source.value ?? source.textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const range = document.createRange();
    if (source.select) source.select();
    else { range.selectNodeContents(source); getSelection().removeAllRanges(); getSelection().addRange(range); }
    document.execCommand("copy");
  }
  const word = button.querySelector("span");
  const before = word.textContent, copied = document.documentElement.dataset.copied;
  word.textContent = copied;
  status(copied);
  setTimeout(() => { word.textContent = before; }, 2000);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button, [data-open], [data-close]");
  if (button?.dataset.copy) copy(button);
  if (button?.dataset.open) {
    event.preventDefault();
    const dialog = document.getElementById(button.dataset.open);
    dialog.close();
    dialog.showModal();
    dialog.addEventListener("close", () => button.focus(), { once: true });
  }
  if (button?.dataset.pause) {
    const live = document.getElementById(button.dataset.pause);
    live.toggleAttribute("data-paused");
    const word = button.querySelector("span"), other = button.dataset.other;
    button.dataset.other = word.textContent;
    word.textContent = other;
  }
  if (button?.dataset.close !== undefined && button.closest("dialog").matches(":modal")) { event.preventDefault(); button.closest("dialog").close(); }
});

// A form is sent once, and a button whose name has to be typed waits for it.
document.addEventListener("submit", (event) => {
  if (event.target.method !== "post") return;
  if (event.target.dataset.sent) { event.preventDefault(); return; }
  event.target.dataset.sent = "1";
});
addEventListener("pageshow", () => { for (const form of $$("form[data-sent]")) delete form.dataset.sent; });

// A link that was sent to its reader has behind the # what no server may see but in a
// form. It leaves the address, which others may see, and the form is sent.
function takeFragment() {
  const field = document.querySelector("[data-fragment]"), token = location.hash.slice(1);
  if (!field || !/^[\w-]{43}$/.test(token)) return;
  history.replaceState(null, "", location.pathname);
  field.value = token;
  field.form.requestSubmit();
}
addEventListener("hashchange", takeFragment);

// How long something runs.
function count(from) {
  for (const one of $$("[data-since]", from)) {
    const seconds = Math.max(0, Math.round((Date.now() - one.dataset.since) / 1000));
    one.textContent = Math.floor(seconds / 60) + ":" + String(seconds % 60).padStart(2, "0");
  }
}
setInterval(() => count(document), 1000);

// merge puts what is new into what is there, and leaves what is the same: a clip
// that plays goes on, and so does who stands on a link. It tells whether all is in.
function merge(now, next) {
  const there = [...now.children], fresh = [...next.children];
  if (there.length !== fresh.length) {
    if (now.contains(document.activeElement)) return false;
    now.replaceChildren(...fresh);
    return true;
  }
  return there.map((old, i) => {
    if (old.isEqualNode(fresh[i])) return true;
    if (old.matches(".tiles") && fresh[i].matches(".tiles")) return merge(old, fresh[i]);
    if (old.contains(document.activeElement)) return false;
    const opened = $$("details", old), closed = $$("details", fresh[i]);
    if (opened.length === closed.length) opened.forEach((one, n) => { closed[n].open = one.open; });
    old.replaceWith(fresh[i]);
    return true;
  }).every(Boolean);
}

// What changes by itself: an element with data-live is fetched again while the
// page is visible, every two seconds, after a minute (with data-calm: from the
// start) every ten, until the server says that it is final.
function follow(live, now = false) {
  const began = Date.now();
  let tag = "";
  const again = () => setTimeout(step, live.dataset.calm !== undefined || Date.now() - began > 60_000 ? 10_000 : 2_000);
  async function step() {
    if (!live.isConnected) return;
    if (document.hidden || live.dataset.paused !== undefined) { again(); return; }
    try {
      const answer = await fetch(live.dataset.live, { headers: tag ? { "If-None-Match": tag } : {} });
      if (answer.status === 200) {
        tag = answer.headers.get("ETag") ?? "";
        const next = fragment(await answer.text()).querySelector("[data-live]");
        const text = next?.dataset.announce;
        if (next) {
          localTimes(next);
          count(next);
          const final = next.dataset.final !== undefined;
          if (!merge(live, next) && !final) tag = "";
          if (text && text !== live.dataset.announce) status(text);
          live.dataset.announce = text ?? "";
          if (final) { live.dataset.final = ""; return; }
        }
      } else if (answer.status !== 304) return;
    } catch { /* the network is away: the next step tries again */ }
    again();
  }
  if (now) step();
  else again();
}

// Keys: off while typing, and by a choice of the reader's. The server says which
// letter leads where.
let waitsForGo = 0;
const seen = (one) => one.checkVisibility();

// find goes to the box that finds anything, which a phone has in its menu, or else to
// the page that does.
function find() {
  const boxes = $$("[data-find]"), menu = document.querySelector(".top details");
  if (!boxes.some(seen) && menu && seen(menu)) menu.open = true;
  const box = boxes.find(seen);
  if (box) box.select();
  else $$("nav a[href$='/find']").find(seen)?.click();
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    const menu = document.querySelector(".top details[open]");
    if (menu) { menu.open = false; menu.querySelector("summary").focus(); }
  }
  if (event.ctrlKey || event.metaKey || event.altKey || document.documentElement.dataset.keys === "off") return;
  if (event.target.closest("input, textarea, select, dialog, [contenteditable]")) return;
  const goes = Date.now() - waitsForGo < 1500;
  waitsForGo = 0;
  if (goes) {
    $$("nav a[data-letter]").find((one) => one.dataset.letter === event.key)?.click();
    return;
  }
  const rows = $$("tbody a.rowlink, .tile h3 a");
  const at = rows.indexOf(document.activeElement);
  switch (event.key) {
    case "g": waitsForGo = Date.now(); break;
    case "/": event.preventDefault(); find(); break;
    case "?": document.getElementById("help").showModal(); break;
    case "j": rows[Math.min(at + 1, rows.length - 1)]?.focus(); break;
    case "k": rows[Math.max(at - 1, 0)]?.focus(); break;
  }
});

localTimes(document);
count(document);
takeFragment();
for (const one of $$("[data-scripted]")) one.hidden = false;
// A dialog that the server has opened is one of ours too: Escape closes it.
for (const dialog of $$("dialog[open]")) { dialog.close(); dialog.showModal(); }
for (const live of $$("[data-live]:not([data-final])")) follow(live);
document.addEventListener("follow", (event) => follow(event.target, true));
// After a form the reader is where it is said what became of it.
document.querySelector("[data-focus]")?.focus();
