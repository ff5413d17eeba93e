// The page: choose a model, ask it over REST, show the answer and the call.
import { element, heatMap, rendered } from "/web/answers.js";
import { attentionMaps } from "/web/captions.js";
import { examplesOf } from "/web/examples.js";
import { fillImage, forgetImages, imageField, imageOf, imagesReady, thumbnail } from "/web/images.js";

const LABELS = {
  text: "Text", text_a: "First text", text_b: "Second text", question: "Question",
  context: "Text that is read", choices: "Choices, one a line",
  image: "Image",
};
const ABOUT = {
  question_answering: "Answers a question with a piece of the text.",
  spans: "Finds all answers to a question in the text.",
  entities: "Finds names in the text.",
  classification: "Chooses a class for the text.",
  multi_label: "Says which of its labels the text has.",
  regression: "Gives the text a score.",
  embedding: "Maps the text to a vector.",
  choice: "Chooses how the text goes on.",
  masks: "Fills each [MASK] of the text.",
  translation: "Translates the text.",
  captioning: "Says what is in the image.",
};
// Inline in the call for a shell: larger images are read from their files.
const INLINE_BYTES = 8000;
const $ = (id) => document.getElementById(id);
let models = [];
// Bytes of a request that the server takes.
let mostBytes = Infinity;
// The question under way, or none. A reply to any other one is dropped.
let asking = null;

const model = () => models.find((one) => one.key === $("model").value);
const inputsOf = (chosen) => chosen.signatures[chosen.signature].inputs;
// What the form depends on.
const formOf = (chosen) => chosen && JSON.stringify([chosen.key, chosen.task, inputsOf(chosen)]);

const isImage = (chosen, input) => chosen.task === "captioning" && input.dtype === "string";

// Reads the list; whether the form must be shown anew, since its model has gone or takes other inputs.
async function readModels() {
  const answer = await fetch("/web/models");
  if (!answer.ok) throw new Error(await wordsOf(answer));
  const { models: found, max_request_bytes: most } = await answer.json();
  mostBytes = most ?? Infinity;
  const [before, form] = [$("model").value, formOf(model())];
  models = found;
  $("model").replaceChildren(
    ...models.map((one) => element("option", { value: one.key, text: `${one.key} · version ${one.version}` })),
  );
  if (models.some((one) => one.key === before)) $("model").value = before;
  return form !== formOf(model());
}

function showForm() {
  const chosen = model();
  if (!chosen) return;
  stop();
  const inputs = inputsOf(chosen);
  $("input-title").textContent = chosen.task === "captioning" ? "Your image" : "Your text";
  $("about").textContent = ABOUT[chosen.task] ?? "Takes these inputs.";
  forgetImages();
  $("fields").replaceChildren(...inputs.map((input) => field(chosen, input)));
  const examples = examplesOf(chosen, inputs.map((one) => one.name));
  $("examples").replaceChildren(...examples.map(exampleButton));
  $("examples-block").hidden = examples.length === 0;
  if (examples.length) fill(examples[0]);
  showAnswer([element("p", { class: "quiet", text: "Ask, and the answer stands here." })], "");
  showCall();
}

function field(chosen, input) {
  if (isImage(chosen, input)) return imageField(input.name, LABELS[input.name] ?? input.name, mostBytes, showCall);
  const id = `field-${input.name}`;
  const rows = input.name === "context" ? 7 : input.name === "question" ? 2 : 4;
  const box = element("textarea", { id, name: input.name, rows, dir: "auto", spellcheck: "false" });
  box.addEventListener("input", showCall);
  const plain = input.dtype === "string" ? "" : ` (${input.dtype}, as JSON)`;
  const label = element("label", { for: id, text: (LABELS[input.name] ?? input.name) + plain });
  return element("div", { class: "field" }, label, box);
}

function exampleButton(example) {
  const first = example.question ?? Object.values(example)[0];
  const text = first.title ?? first;
  const button = element("button", { type: "button", text, dir: "auto", title: text });
  if (first.url) button.replaceChildren(thumbnail(first));
  button.addEventListener("click", () => {
    fill(example);
    ask();
  });
  return button;
}

function fill(example) {
  for (const [name, value] of Object.entries(example)) {
    if (value.url) fillImage(name, value);
    else $(`field-${name}`).value = value;
  }
  showCall();
}

// Name of each input -> the value of one row.
function values(chosen) {
  const found = {};
  for (const input of inputsOf(chosen)) {
    const { name, dtype, shape } = input;
    if (isImage(chosen, input)) {
      found[name] = imageOf(name);
      continue;
    }
    const text = $(`field-${name}`).value;
    if (dtype !== "string") found[name] = JSON.parse(text || "null");
    else found[name] = shape?.length === 2 ? text.split("\n").filter((line) => line !== "") : text;
  }
  return found;
}

function request(chosen, name, row, version = "") {
  const inputs = Object.fromEntries(Object.entries(row).map(([key, value]) => [key, [value]]));
  const url = `${location.origin}/v1/models/${encodeURIComponent(chosen.name)}${version}:predict`;
  return { url, body: JSON.stringify({ signature_name: name, inputs }) };
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

// A large image is read from its file: no shell takes so long an argument.
function command(url, body, inputs) {
  const curl = `curl -s ${quoted(url)} \\\n  -H 'Content-Type: application/json' \\\n  -d `;
  const large = inputs.find((one) => one.b64?.length > INLINE_BYTES);
  if (!large) return curl + quoted(body);
  const [before, after] = body.split(large.b64).map(quoted);
  return `{ printf %s ${before}; base64 < ${quoted(large.name)}; printf %s ${after}; } |\n${curl}@-`;
}

function showCall() {
  try {
    const chosen = model();
    const inputs = values(chosen);
    const { url, body } = request(chosen, chosen.signature, inputs);
    $("call").textContent = command(url, body, Object.values(inputs));
  } catch {
    $("call").textContent = "";
  }
}

async function wordsOf(answer) {
  const text = await answer.text();
  let words = text;
  try {
    words = JSON.parse(text).error ?? text;
  } catch {
    // Not JSON: the text itself.
  }
  return `The server refused (${answer.status}): ${String(words).slice(0, 500)}`;
}

// Numbers that are none are bare words in TF Serving's JSON, which JSON.parse does not know.
function parsed(text) {
  const bare = /("(?:[^"\\]|\\.)*")|\bNaN\b|-?\bInfinity\b/g;
  return JSON.parse(text.replace(bare, (all, string) => string ?? "null"));
}

async function predict(chosen, name, row, signal) {
  // One version for all parts of an answer, and for the words below it.
  const { url, body } = request(chosen, name, row, `/versions/${chosen.version}`);
  const answer = await fetch(url, {
    method: "POST", body, signal, headers: { "Content-Type": "application/json" },
  });
  if (!answer.ok) throw Object.assign(new Error(await wordsOf(answer)), { status: answer.status });
  const { outputs } = parsed(await answer.text());
  const names = chosen.signatures[name].outputs;
  const columns = names.length === 1 ? { [names[0]]: outputs } : outputs;
  return Object.fromEntries(Object.entries(columns).map(([key, column]) => [key, column[0]]));
}

// Gives up the question under way.
function stop() {
  asking?.abort();
  asking = null;
  $("send").removeAttribute("aria-busy");
}

async function ask(again = false) {
  stop();
  const mine = (asking = new AbortController());
  const chosen = model();
  $("send").setAttribute("aria-busy", "true");
  try {
    await imagesReady();
    if (mine !== asking) return;
    const inputs = values(chosen);
    const start = performance.now();
    const row = await predict(chosen, chosen.signature, inputs, mine.signal);
    const took = performance.now() - start;
    if (mine !== asking) return;
    const blocks = rendered(chosen, row, inputs);
    if (chosen.task === "captioning" && "attention" in chosen.signatures && !row.problem) {
      const seen = await predict(chosen, "attention", inputs, mine.signal);
      blocks.push(...attentionMaps(seen, Object.values(inputs)[0], chosen.image_fit));
    }
    if ("alignment" in chosen.signatures) {
      blocks.push(...heatMap(await predict(chosen, "alignment", inputs, mine.signal)));
    }
    if (mine === asking) showAnswer(blocks, `Answered in ${took.toFixed(0)} ms by version ${chosen.version}.`);
  } catch (error) {
    if (mine !== asking) return;
    let other = false;
    if (error.status === 404 && !again) {
      // Another version may be in service by now.
      other = await readModels().catch(() => false);
      if (mine !== asking) return;
      if (!other) return ask(true);
    }
    const lost = error instanceof TypeError ? "The server does not answer. Is it still running?" : error.message;
    const words = error instanceof SyntaxError ? `A field is no JSON: ${error.message}` : lost;
    showError(words);
    if (other) return followed(words, mine);
    readModels().then((changed) => changed && followed(words, mine)).catch(() => {});
  } finally {
    if (mine === asking) $("send").removeAttribute("aria-busy");
  }
}

// The form of another model, under the words of what led to it.
function followed(words, mine) {
  const newest = mine === asking;
  showForm();
  if (newest) showError(words);
}

function showAnswer(blocks, timing) {
  $("error").hidden = true;
  $("answer").replaceChildren(...blocks);
  $("timing").textContent = timing;
}

function showError(words) {
  showAnswer([], "");
  $("error").hidden = false;
  $("error").textContent = words;
}

async function copy() {
  let told = "Copied";
  try {
    await navigator.clipboard.writeText($("call").textContent);
  } catch {
    getSelection().selectAllChildren($("call"));
    told = "Selected: press Ctrl + C";
  }
  $("copy").textContent = told;
  setTimeout(() => ($("copy").textContent = "Copy"), 2000);
}

$("model").addEventListener("change", showForm);
$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  ask();
});
$("ask").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    ask();
  }
});
$("copy").addEventListener("click", copy);
// A file that is dropped beside its place must not be opened instead of the page.
for (const kind of ["dragover", "drop"]) {
  window.addEventListener(kind, (event) => event.dataTransfer?.types.includes("Files") && event.preventDefault());
}
window.addEventListener("focus", () => readModels().then((other) => other && showForm()).catch(() => {}));
readModels().then(showForm, (error) => showError(error.message));
