// The playground: what is typed becomes a call of the API, and what comes back is
// shown as it comes. What a model says is a stranger's text: it is set as text,
// and only fences of code are told apart.

const $ = (id) => document.getElementById(id);
const form = $("play");
const kind = form.dataset.kind;
const models = new Map(JSON.parse(form.dataset.models).map((m) => [m.id, m]));
const base = document.documentElement.dataset.base + "/playground/";
const field = (name) => $("f-" + name);
const say = (text) => { $("live").textContent = text; };

function make(tag, className, text) {
  const one = document.createElement(tag);
  if (className) one.className = className;
  if (text !== undefined) one.textContent = text;
  return one;
}

// Forms of chat: how a request is written, and what of an answer's events is text
// and what is thought.
const words = (text) => (text ? [text] : []);
const forms = {
  chat: {
    path: "chat", endpoint: "/v1/chat/completions",
    body: (ask, turns) => ({
      ...(ask.max && { max_completion_tokens: ask.max }),
      messages: [...words(ask.system).map((content) => ({ role: "system", content })), ...turns.map((turn) => ({
        role: turn.role, content: turn.files.length === 0 ? turn.text
          : [{ type: "text", text: turn.text }, ...turn.files.map((url) => ({ type: "image_url", image_url: { url } }))],
      }))],
    }),
    read: (event) => ({ text: event.choices?.[0]?.delta?.content, thought: event.choices?.[0]?.delta?.reasoning_content }),
  },
  responses: {
    path: "responses", endpoint: "/v1/responses",
    body: (ask, turns) => ({
      ...(ask.max && { max_output_tokens: ask.max }), ...(ask.system && { instructions: ask.system }),
      input: turns.map((turn) => ({ role: turn.role, content: turn.role === "assistant" ? turn.text
        : [{ type: "input_text", text: turn.text }, ...turn.files.map((url) => ({ type: "input_image", image_url: url }))] })),
    }),
    read: (event) => ({
      text: event.type === "response.output_text.delta" ? event.delta : "",
      thought: event.type === "response.reasoning_summary_text.delta" ? event.delta : "",
      error: event.type === "response.failed" ? event.response?.error : undefined,
    }),
  },
  messages: {
    path: "messages", endpoint: "/native/v1/messages",
    body: (ask, turns, model) => ({
      max_tokens: ask.max || Math.min(model.output || 4096, 4096), ...(ask.system && { system: ask.system }),
      messages: turns.map((turn) => ({ role: turn.role, content: [{ type: "text", text: turn.text }, ...turn.files.map((url) => ({
        type: "image", source: { type: "base64", media_type: url.slice(5, url.indexOf(";")), data: url.slice(url.indexOf(",") + 1) },
      }))] })),
    }),
    read: (event) => ({ text: event.delta?.text, thought: event.delta?.thinking }),
  },
};

const turns = []; // of the conversation: {role, text, files}
let files = []; // data addresses of what is attached
let running; // the AbortController of what is under way

const model = () => models.get(field("model").value);
const formOf = (one) => forms[["chat", "responses", "messages"].find((name) => one.forms.includes(name))];
const number = (name) => { const n = Number(field(name)?.value); return field(name)?.value.trim() && Number.isFinite(n) ? n : undefined; };
const settings = () => ({ system: field("system").value, max: number("max"), temperature: number("temperature") });

// request is what is sent for a prompt: where to, and the body.
function request(prompt) {
  const one = model();
  if (kind === "chat") {
    const ask = settings(), chosen = formOf(one);
    const asked = [...turns, { role: "user", text: prompt, files }];
    return { chosen, path: chosen.path, endpoint: chosen.endpoint, body: { model: one.id, stream: true,
      ...(ask.temperature !== undefined && { temperature: ask.temperature }), ...chosen.body(ask, asked, one) } };
  }
  const body = { model: one.id, prompt };
  for (const name of ["resolution", "ratio"]) if (field(name).value) body[name] = field(name).value;
  for (const name of ["n", "duration"]) if (field(name)?.value) body[name] = Number(field(name).value);
  if (files.length > 0) body.images = files;
  return { path: kind + "s", endpoint: "/v1/" + kind + "s/generations", body };
}

// offer lists the models that the chosen key may use.
function offer() {
  const key = field("key").value, select = field("model"), before = select.value;
  const usable = [...models.values()].filter((one) => one.keys.includes(key));
  select.replaceChildren(...usable.map((one) => new Option(one.label, one.id, false, one.id === before)));
  choices();
}

// Settings: choices are those of the model.
function choices() {
  const one = model();
  const fill = (name, values) => {
    const select = field(name);
    if (!select) return;
    const before = select.value;
    select.replaceChildren(select.options[0], ...(values ?? []).map((value) => new Option(value, value)));
    select.value = (values ?? []).map(String).includes(before) ? before : "";
    select.closest(".field").hidden = !values?.length;
  };
  fill("resolution", one.tiers);
  fill("ratio", one.ratios);
  fill("duration", one.seconds);
  fill("n", Array.from({ length: Math.max(0, (one.images ?? 1) - 1) }, (_, i) => i + 2));
  $("attach").hidden = kind !== "chat" && !one.references;
  code();
}

// code shows what is sent as programs write it; long data is cut.
function code() {
  const { endpoint, body } = request(field("prompt").value || "Hello!");
  const url = form.dataset.base + endpoint;
  const cut = (_, value) => (typeof value === "string" && value.startsWith("data:") ? value.slice(0, 40) + "…" : value);
  const text = JSON.stringify(body, cut, 2);
  const native = endpoint.startsWith("/native");
  const [name, value] = native ? ["x-api-key", "$API_KEY"] : ["Authorization", "Bearer $API_KEY"];
  const quoted = text.replaceAll("'", "'\\''");
  const python = text.replace(/(: |^\s*)(true|false|null)(,?)$/gm, (_, a, word, b) => a + { true: "True", false: "False", null: "None" }[word] + b);
  $("code-0-text").textContent = `curl ${body.stream ? "-N " : ""}${url} \\\n  -H "${name}: ${value}" -H "Content-Type: application/json" \\\n  -d '${quoted}'`;
  $("code-1-text").textContent = `import os, requests\n\nanswer = requests.post("${url}",\n    headers={"${name}": "${value.replace("$API_KEY", "")}" + os.environ["API_KEY"]},\n` +
    `    json=${python.replaceAll("\n", "\n    ")}${body.stream ? ", stream=True" : ""})\n` +
    (body.stream ? "for line in answer.iter_lines():\n    print(line.decode())" : "print(answer.json())");
  $("code-2-text").textContent = `const answer = await fetch("${url}", {\n  method: "POST",\n  headers: { "${name}": "${value.replace("$API_KEY", "")}" + process.env.API_KEY, "Content-Type": "application/json" },\n` +
    `  body: JSON.stringify(${text.replaceAll("\n", "\n  ")}),\n});\n` +
    (body.stream ? "for await (const part of answer.body) process.stdout.write(part);" : "console.log(await answer.json());");
  $("code-3-text").textContent = `package main\n\nimport (\n\t"io"\n\t"log"\n\t"net/http"\n\t"os"\n\t"strings"\n)\n\nfunc main() {\n` +
    `\tr, err := http.NewRequest("POST", "${url}", strings.NewReader(${JSON.stringify(JSON.stringify(body, cut))}))\n` +
    `\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n\tr.Header.Set("Content-Type", "application/json")\n` +
    `\tr.Header.Set("${name}", "${value.replace("$API_KEY", "")}"+os.Getenv("API_KEY"))\n` +
    `\tanswer, err := http.DefaultClient.Do(r)\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n\tdefer answer.Body.Close()\n` +
    `\tif _, err := io.Copy(os.Stdout, answer.Body); err != nil {\n\t\tlog.Fatal(err)\n\t}\n}`;
}

// show puts a text into an element: fences of code apart, all of it as text.
function show(into, text) {
  into.replaceChildren(...text.split(/^```/m).flatMap((piece, i) => {
    if (i % 2 === 0) return piece.trim() ? [make("p", "said", piece.trim())] : [];
    const pre = make("pre", "", piece.slice(piece.indexOf("\n") + 1));
    pre.tabIndex = 0;
    return [pre];
  }));
}

// entry adds one of the conversation.
function entry(who, className) {
  const one = make("article", "turn card stack " + className);
  one.append(make("h2", "small muted", who));
  $("talk").append(one);
  $("samples")?.remove();
  return one;
}

function pictures(into, urls) {
  if (urls.length === 0) return;
  const row = make("div", "row");
  for (const url of urls) {
    const image = make("img", "thumb");
    image.alt = "an attached picture";
    image.src = URL.createObjectURL(blobOf(url));
    row.append(image);
  }
  into.append(row);
}

// blobOf makes a file of a data address: pages may show those, and no data ones.
function blobOf(url) {
  const raw = atob(url.slice(url.indexOf(",") + 1));
  return new Blob([Uint8Array.from(raw, (c) => c.charCodeAt(0))], { type: url.slice(5, url.indexOf(";")) });
}

function failed(into, message, id, status) {
  const one = make("div", "notice bad"), words = make("div", "", message + (id ? " (" + id + ")" : ""));
  if (status === 402) { // money is what helps
    const link = make("a", "", "To your balance");
    link.href = document.documentElement.dataset.base + "/billing";
    words.append(" ", link);
  }
  one.append(words);
  into.append(one);
  say(message);
}

// wordsOf is what an error answer says.
async function wordsOf(answer) {
  try { return (await answer.json()).error.message; } catch { return "The answer was " + answer.status + ". Reload the page and try again."; }
}

// followed adds what the console's module asks for again until it is final.
function followed(into, address) {
  const live = make("div", "stack wide");
  live.dataset.live = address;
  into.append(live);
  live.dispatchEvent(new Event("follow", { bubbles: true }));
}

// events reads the data of an event stream.
async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const data = line.startsWith("data:") ? line.slice(5).trim() : "";
      if (data && data !== "[DONE]") yield JSON.parse(data);
    }
  }
}

// chat shows an answer as it streams.
async function chat(answer, asked, one) {
  const into = entry(model().id, "model");
  const thoughts = make("details", "thoughts");
  const thought = make("p", "said");
  thoughts.append(make("summary", "", "Thinking"), thought);
  const said = make("div", "stack");
  into.append(said);
  let text = "", error, waits = false;
  const began = Date.now();
  try {
    for await (const event of events(answer)) {
      const got = one.read(event);
      error ??= event.error ?? got.error;
      if (got.thought) {
        if (!thoughts.isConnected) said.before(thoughts);
        thought.textContent += got.thought;
        thoughts.firstChild.textContent = "Thinking, " + Math.round((Date.now() - began) / 1000) + " s";
      }
      if (got.text) text += got.text;
      if (got.text && !waits) { // drawn once a frame, however many pieces come
        waits = true;
        requestAnimationFrame(() => { waits = false; show(said, text); });
      }
    }
    say("The answer is complete");
  } catch (cause) {
    if (cause.name !== "AbortError") error ??= { message: "The answer broke off." };
    else { into.append(make("p", "small muted", "Stopped.")); say("Stopped"); }
  }
  show(said, text);
  if (error) failed(into, error.message);
  if (text) turns.push(...asked, { role: "assistant", text, files: [] });
  followed(into, base + answer.headers.get("X-Request-Id") + "/cost");
}

async function send() {
  const prompt = field("prompt").value.trim();
  if (running || (!prompt && files.length === 0)) { field("prompt").focus(); return; }
  const { chosen, path, body } = request(prompt);
  const asked = [{ role: "user", text: prompt, files }];
  const mine = entry("you", "mine");
  mine.append(make("p", "said", prompt));
  pictures(mine, files);
  field("prompt").value = kind === "chat" ? "" : prompt;
  attach([]);
  running = new AbortController();
  $("stop").hidden = kind !== "chat";
  $("send").disabled = true;
  try {
    const answer = await fetch(base + field("key").value + "/" + path, { method: "POST", signal: running.signal,
      headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    if (!answer.ok) {
      failed(mine, await wordsOf(answer), answer.headers.get("X-Request-Id"), answer.status);
      if (!field("prompt").value) field("prompt").value = prompt;
      if (files.length === 0) attach(asked[0].files);
    } else if (chosen) await chat(answer, asked, chosen);
    else followed(entry(body.model, "model"), document.documentElement.dataset.base + "/jobs/" + (await answer.json()).id + "/live");
  } catch (cause) {
    if (cause.name !== "AbortError") failed(mine, "The gateway did not answer. Nothing is known of a charge: look at the requests.");
  }
  running = undefined;
  $("stop").hidden = true;
  $("send").disabled = false;
  field("prompt").focus({ preventScroll: true });
  code();
}

// attach shows what goes with the next message.
function attach(urls) {
  files = urls;
  $("attached").replaceChildren();
  pictures($("attached"), files);
  if (files.length === 0) return;
  const none = make("button", "plain", "Remove");
  none.type = "button";
  none.addEventListener("click", () => { attach([]); code(); });
  $("attached").append(none);
}

const dataOf = (file) => new Promise((done, fail) => {
  const reader = new FileReader();
  reader.onload = () => done(reader.result);
  reader.onerror = () => fail(reader.error);
  reader.readAsDataURL(file);
});

form.addEventListener("submit", (event) => { event.preventDefault(); send(); });
field("prompt").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); send(); }
});
form.addEventListener("input", code);
field("model").addEventListener("change", choices);
field("key").addEventListener("change", offer);
$("stop").addEventListener("click", () => running?.abort());
$("anew")?.addEventListener("click", () => { turns.length = 0; $("talk").replaceChildren(); code(); });
$("files").addEventListener("change", async (event) => {
  const chosen = [...event.target.files];
  event.target.value = "";
  attach([...files, ...await Promise.all(chosen.map(dataOf))]);
  code();
});
choices();
