// The playground: what is typed becomes a call of the API, and what comes back is
// shown as it comes. What a model says is a stranger's text: it is set as text,
// and only fences of code are told apart.

const $ = (id) => document.getElementById(id);
const form = $("play");
const kind = form.dataset.kind;
const models = new Map(JSON.parse(form.dataset.models).map((m) => [m.id, m]));
const base = document.documentElement.dataset.base + "/playground/";
const field = (name) => $("f-" + name);
// The texts of this page are in its markup, in the reader's language. `%s` stands for a value.
const texts = new Map([...document.querySelectorAll("#words data")].map((one) => [one.value, one.textContent]));
const word = (name, value) => texts.get(name).replace("%s", value);
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

// Kinds of models that answer at once: what is sent, and how an answer is shown.
const lines = () => field("others").value.split("\n").map((line) => line.trim()).filter(Boolean);
const bar = (value, text, bad) => { // the bar of a bad thing is red
  const row = make("div", "row"), meter = make("meter");
  if (bad) Object.assign(meter, { low: 0.2, high: 0.5, optimum: 0 });
  meter.value = value;
  meter.setAttribute("aria-label", text);
  row.append(meter, make("span", "num", value.toFixed(2)), make("span", "", text));
  return row;
};
const falling = (rows) => rows.sort((a, b) => b.value - a.value).map(({ value, text, bad }) => bar(value, text, bad));
const cosine = (a, b) => {
  const product = (x, y) => x.reduce((sum, n, i) => sum + n * y[i], 0);
  return product(a, b) / Math.sqrt(product(a, a) * product(b, b));
};
const trials = {
  embedding: {
    path: "embeddings", body: (prompt) => ({ input: [prompt, ...lines()], encoding_format: "float" }),
    show: async (answer, into, asked) => {
      const [first, ...others] = (await answer.json()).data.map((one) => one.embedding);
      into.append(...falling(others.map((other, i) => ({ value: cosine(first, other), text: asked.input[i + 1] }))),
        make("p", "small muted", word("cosine", first.length)));
    },
  },
  rerank: {
    path: "rerank", body: (prompt) => ({ query: prompt, documents: lines() }),
    show: async (answer, into, asked) => {
      const { results } = await answer.json();
      into.append(...falling(results.map((one) => ({ value: one.relevance_score, text: asked.documents[one.index] }))));
    },
  },
  moderation: {
    path: "moderations", body: (prompt) => ({ input: prompt }),
    show: async (answer, into) => {
      const { results: [one] } = await answer.json();
      into.append(make("p", "said", word(one.flagged ? "flagged" : "passed")),
        ...falling(Object.entries(one.category_scores ?? {}).map(([text, value]) => ({ value, text, bad: true }))));
    },
  },
  speech: {
    path: "speech", body: (prompt) => ({
      input: prompt, voice: field("voice").value, ...(field("format").value && { response_format: field("format").value }),
      ...(number("speed") && { speed: number("speed") }),
    }),
    show: async (answer, into, asked) => {
      const row = make("div", "row"), player = sound(await answer.blob()), save = make("a", "button", word("save"));
      player.autoplay = true;
      save.href = player.src;
      save.download = "speech." + (asked.response_format ?? "mp3");
      row.append(player, save);
      into.append(row);
    },
  },
  transcription: {
    path: "transcriptions", form: (prompt) => ({
      ...(prompt && { prompt }), ...(field("language").value.trim() && { language: field("language").value.trim() }),
    }),
    show: async (answer, into) => {
      const { text } = await answer.json();
      into.append(make("p", "said", text || word("noWords")));
      acts(into, text);
    },
  },
};
const trial = trials[kind];

// sound returns a player of a sound.
function sound(blob) {
  const player = make("audio");
  player.controls = true;
  player.src = URL.createObjectURL(blob);
  return player;
}

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
  if (trial?.form) {
    const body = new FormData();
    for (const [name, value] of Object.entries({ model: one.id, ...trial.form(prompt) })) body.append(name, value);
    if (files.length > 0) body.append("file", files[0], files[0].name);
    return { path: trial.path, body };
  }
  if (trial) return { path: trial.path, body: { model: one.id, ...trial.body(prompt) } };
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
  fill("format", (one.formats ?? ["opus", "aac", "flac", "wav"]).filter((name) => name !== "pcm")); // browsers play the others
  if (field("voice") && one.voices) {
    $("f-voice-list").replaceChildren(...one.voices.map((voice) => new Option(voice, voice)));
    if (!one.voices.includes(field("voice").value)) field("voice").value = one.voices[0];
  }
  fill("n", Array.from({ length: Math.max(0, (one.images ?? 1) - 1) }, (_, i) => i + 2));
  $("f-model-hint").textContent = form.querySelector(`data[value="${CSS.escape(one.id)}"]`).textContent;
  $("attach").hidden = kind !== "chat" && kind !== "transcription" && !one.references;
  code();
}

// code shows what is sent as programs write it; long data is cut.
const examples = [0, 1, 2].map((i) => $(`code-${i}-text`).textContent);
function code() {
  if (trial) {
    examples.forEach((text, i) => { $(`code-${i}-text`).textContent = text.replaceAll('"MODEL"', JSON.stringify(model().id)); });
    return;
  }
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

// attachments shows pictures by their data addresses, or a file of sound.
function attachments(into, urls) {
  if (urls.length === 0) return;
  if (urls[0] instanceof File) { into.append(sound(urls[0]), make("span", "small muted", urls[0].name)); return; }
  const row = make("div", "row");
  for (const url of urls) {
    const image = make("img", "thumb");
    image.alt = word("picture");
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
    const link = make("a", "", word("balance"));
    link.href = document.documentElement.dataset.base + "/billing";
    words.append(" ", link);
  }
  one.append(words);
  one.setAttribute("role", "alert"); // screen readers speak it
  into.append(one);
}

// wordsOf is what an error answer says.
async function wordsOf(answer) {
  try { return (await answer.json()).error.message; } catch { return word("status", answer.status); }
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
  thoughts.append(make("summary", "", word("thinking")), thought);
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
        thoughts.firstChild.textContent = word("thinkingFor", Math.round((Date.now() - began) / 1000));
      }
      if (got.text) text += got.text;
      if (got.text && !waits) { // drawn once a frame, however many pieces come
        waits = true;
        requestAnimationFrame(() => { waits = false; show(said, text); });
      }
    }
    say(word("complete"));
  } catch (cause) {
    if (cause.name !== "AbortError") error ??= { message: word("broke") };
    else { into.append(make("p", "small muted", word("stopped"))); say(word("stopped")); }
  }
  show(said, text);
  if (error) failed(into, error.message);
  if (text) turns.push(...asked, { role: "assistant", text, files: [] });
  followed(into, base + answer.headers.get("X-Request-Id") + "/cost");
  acts(into, text, () => {
    if (text) turns.splice(-2);
    return asked[0];
  });
}

// acts adds the buttons below an answer. undo takes the question and its answer back and returns the
// question; only the newest answer can be asked for again.
function acts(into, text, undo) {
  document.querySelector("#talk .again")?.remove();
  const row = make("div", "row");
  const button = (name, act) => {
    const one = make("button", "plain", name);
    one.type = "button";
    one.addEventListener("click", () => act(one));
    row.append(one);
    return one;
  };
  if (text) button(word("copy"), async (one) => { await navigator.clipboard.writeText(text); one.textContent = word("copied"); say(word("copied")); }).hidden = !navigator.clipboard;
  if (undo) {
    button(word("retry"), () => {
      if (running) return;
      const asked = undo();
      into.previousElementSibling.remove();
      into.remove();
      field("prompt").value = asked.text;
      attach(asked.files);
      send();
    }).classList.add("again");
  }
  into.append(row);
}

async function send() {
  const prompt = field("prompt").value.trim();
  if (running || (!prompt && files.length === 0)) { field("prompt").focus(); return; }
  const { chosen, path, body } = request(prompt), isForm = body instanceof FormData;
  const asked = [{ role: "user", text: prompt, files }];
  const mine = entry(word("you"), "mine");
  if (prompt) mine.append(make("p", "said", prompt));
  attachments(mine, files);
  field("prompt").value = kind === "chat" ? "" : prompt;
  attach([]);
  running = new AbortController();
  $("stop").hidden = kind !== "chat";
  $("send").disabled = true;
  try {
    const answer = await fetch(base + field("key").value + "/" + path, { method: "POST", signal: running.signal,
      ...(isForm ? { body } : { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }) });
    if (!answer.ok) {
      failed(mine, await wordsOf(answer), answer.headers.get("X-Request-Id"), answer.status);
      if (!field("prompt").value) field("prompt").value = prompt;
      if (files.length === 0) attach(asked[0].files);
    } else if (chosen) await chat(answer, asked, chosen);
    else if (trial) {
      const into = entry(model().id, "model");
      await trial.show(answer, into, body);
      say(word("complete"));
      followed(into, base + answer.headers.get("X-Request-Id") + "/cost");
    }
    else followed(entry(body.model, "model"), document.documentElement.dataset.base + "/jobs/" + (await answer.json()).id + "/live");
  } catch (cause) {
    if (cause.name !== "AbortError") failed(mine, word("silent"));
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
  attachments($("attached"), files);
  if (files.length === 0) return;
  const none = make("button", "plain", word("remove"));
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
  const sends = event.ctrlKey || event.metaKey || (kind === "chat" && !event.shiftKey && !event.isComposing);
  if (event.key === "Enter" && sends) { event.preventDefault(); send(); }
});
form.addEventListener("input", code);
field("model").addEventListener("change", choices);
field("key").addEventListener("change", offer);
$("stop").addEventListener("click", () => running?.abort());
$("anew")?.addEventListener("click", () => { turns.length = 0; $("talk").replaceChildren(); code(); });
$("files").addEventListener("change", async (event) => {
  const chosen = [...event.target.files];
  event.target.value = "";
  attach(trial ? chosen : [...files, ...await Promise.all(chosen.map(dataOf))]);
  code();
});

// Recording: the button begins and ends it.
let recorder;
async function record() {
  if (recorder) { recorder.stop(); return; }
  let stream;
  try {
    stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  } catch {
    failed($("attached"), word("microphone"));
    return;
  }
  const parts = [];
  recorder = new MediaRecorder(stream);
  recorder.addEventListener("dataavailable", (event) => parts.push(event.data));
  recorder.addEventListener("stop", () => {
    const type = recorder.mimeType.split(";")[0], ending = type.split("/")[1];
    recorder = undefined;
    for (const track of stream.getTracks()) track.stop();
    $("record").textContent = word("record");
    attach([new File(parts, "recording." + ending, { type })]);
    say(word("recorded"));
  });
  recorder.start();
  $("record").textContent = word("stopRecording");
  say(word("recording"));
}
if ($("record") && navigator.mediaDevices && window.MediaRecorder) {
  $("record").hidden = false;
  $("record").addEventListener("click", record);
}
choices();
