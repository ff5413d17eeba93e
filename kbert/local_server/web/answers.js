// Answers as elements. Texts go into the page by textContent alone, so none is ever read as HTML.

export function element(name, options = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(options)) {
    if (key === "class") made.className = value;
    else if (key === "text") made.textContent = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

const percent = (score) => `${(100 * score).toFixed(1)} %`;
const isShare = (score) => score >= 0 && score <= 1;
const shown = (score) => (isShare(score) ? percent(score) : score.toFixed(3));

// A passage with pieces marked. Offsets count code points; JavaScript's own strings count UTF-16.
function passage(text, spans) {
  const points = Array.from(text);
  const block = element("p", { class: "passage", dir: "auto" });
  let place = 0;
  for (const { start, end, label, hue } of [...spans].sort((a, b) => a.start - b.start)) {
    if (start < place || end <= start) continue;
    block.append(points.slice(place, start).join(""));
    const mark = element("mark", {}, points.slice(start, end).join(""));
    if (label !== undefined) {
      mark.classList.add("entity");
      mark.style.setProperty("--hue", hue);
      mark.append(element("span", { class: "tag", text: label }));
    }
    block.append(mark);
    place = end;
  }
  block.append(points.slice(place).join(""));
  return block;
}

function bars(rows) {
  const most = Math.max(...rows.map((row) => row.score), 1e-9);
  const list = element("ul", { class: "bars" });
  rows.forEach(({ name, score, best }, index) => {
    const bar = element("i");
    bar.style.width = `${Math.max(0, Math.min(100, (isShare(score) ? 1 : 1 / most) * 100 * score))}%`;
    const kind = (best ?? index === 0) ? "name best" : "name";
    list.append(
      element(
        "li",
        {},
        element("span", { class: kind, dir: "auto", text: name === "" ? "(empty)" : name }),
        element("span", { class: "value", text: shown(score) }),
        element("div", { class: "bar", "aria-hidden": "true" }, bar),
      ),
    );
  });
  return list;
}

export const headline = (text) => element("p", { class: "headline", dir: "auto", text });
export const note = (text) => element("p", { class: "quiet", text });
export const title = (text) => element("h3", { text });

function table(names, rows) {
  const head = element("tr", {}, ...names.map((text) => element("th", { scope: "col", text })));
  const body = rows.map((row) =>
    element("tr", {}, ...row.map((text) => element("td", { dir: "auto", text }))),
  );
  return element("table", { class: "list" }, element("thead", {}, head), element("tbody", {}, ...body));
}

function questionAnswering(row, inputs) {
  const found = row.has_answer ?? row.answer !== "";
  const scores = found ? [`Score ${shown(row.score)}`] : [];
  if (typeof row.null_score === "number") scores.push(`no-answer score ${row.null_score.toFixed(1)}`);
  const nbest = (row.nbest_answer ?? [])
    .map((name, i) => ({ name, score: row.nbest_score[i] }))
    .filter((one) => one.score > 0);
  return [
    headline(found ? row.answer : "The text holds no answer."),
    note(scores.join(" · ")),
    passage(inputs.context, found ? [{ start: row.start, end: row.end }] : []),
    ...(nbest.length ? [title("Best answers"), bars(nbest)] : []),
  ];
}

function spans(row, inputs) {
  const found = row.answers.slice(0, row.count).map((name, i) => ({
    name, score: row.scores[i], start: row.starts[i], end: row.ends[i],
  }));
  const told = found.length === 1 ? "1 answer" : `${found.length} answers`;
  return [headline(told), passage(inputs.context, found), ...(found.length ? [bars(found)] : [])];
}

// Hues far from each other, in the order in which labels appear in the model.
const hueOf = (label, labels) => (200 + 137.5 * Math.max(0, labels.indexOf(label))) % 360;

function entities(row, inputs, model) {
  const kinds = (model.labels ?? []).map((label) => label.replace(/^[BI]-/, ""));
  const labels = [...new Set([...kinds, ...row.label])].filter((label) => label !== "O" && label !== "");
  const found = row.entity.slice(0, row.count).map((text, i) => ({
    text,
    label: row.label[i],
    score: row.score[i],
    start: row.start[i],
    end: row.end[i],
    hue: hueOf(row.label[i], labels),
  }));
  const told = found.length === 1 ? "1 name" : found.length ? `${found.length} names` : "No names";
  const rows = found.map((one) => [one.text, one.label, shown(one.score)]);
  return [
    headline(told),
    passage(Object.values(inputs)[0], found),
    ...(rows.length ? [table(["Text", "Kind", "Score"], rows)] : []),
  ];
}

function classification(row, inputs, model) {
  const names = row.labels ?? model.labels ?? row.scores.map((_, i) => String(i));
  const rows = names.map((name, i) => ({ name, score: row.scores[i] }));
  rows.sort((a, b) => b.score - a.score);
  return [headline(row.label), bars(rows)];
}

function multiLabel(row) {
  const rows = row.labels.map((name, i) => ({ name, score: row.probabilities[i], best: row.chosen[i] }));
  rows.sort((a, b) => b.score - a.score);
  const found = rows.filter((one) => one.best).map((one) => one.name);
  return [headline(found.length ? found.join(" · ") : "None of the labels"), bars(rows)];
}

function choice(row, inputs) {
  const rows = inputs.choices.map((name, i) => ({ name, score: row.scores?.[i] ?? 0 }));
  const best = inputs.choices[row.choice] ?? String(row.choice);
  return [headline(best), ...(row.scores ? [bars(rows.sort((a, b) => b.score - a.score))] : [])];
}

function masks(row) {
  const blocks = [headline(row.filled)];
  for (let i = 0; i < row.count; i++) {
    blocks.push(title(`[MASK] ${i + 1}`));
    blocks.push(bars(row.word[i].map((name, j) => ({ name, score: row.score[i][j] }))));
  }
  return blocks;
}

function translation(row) {
  const names = row.nbest_translation ?? [];
  const rows = names.map((text, i) => [text, row.nbest_score[i].toFixed(3)]);
  return [
    headline(row.translation),
    ...(rows.length > 1 ? [title("Best translations"), table(["Translation", "Score"], rows)] : []),
  ];
}

function captioning(row) {
  if (row.problem) return [headline("There is no caption."), note(`The model could not read it: ${row.problem}.`)];
  // A search may find fewer: the scores of the others are no numbers.
  const rows = (row.nbest_caption ?? [])
    .map((text, i) => [text, row.nbest_score[i]])
    .filter(([, score]) => typeof score === "number")
    .map(([text, score]) => [text, score.toFixed(3)]);
  return [
    headline(row.caption === "" ? "(empty)" : row.caption),
    note(`Score ${row.score.toFixed(3)}`),
    ...(rows.length > 1 ? [title("Best captions"), table(["Caption", "Score"], rows)] : []),
  ];
}

// Pieces as people read them: what goes on with a word begins with a hyphen.
function piece(token) {
  if (token === "</s>") return "(end)";
  if (token.startsWith("▁")) return token.slice(1) || "␣";
  return /^[\p{L}\p{N}]/u.test(token) ? `-${token}` : token;
}

// What each piece of the translation attends to: a row for each of its pieces.
export function heatMap(row) {
  const sources = row.source_tokens.slice(0, row.source_lengths);
  const targets = row.target_tokens.slice(0, row.target_lengths);
  const across = sources.map((token) =>
    element("th", { scope: "col" }, element("span", { text: piece(token) })),
  );
  const head = element("tr", {}, element("td"), ...across);
  const body = targets.map((token, i) => {
    const cells = sources.map((_, j) => {
      const share = row.alignment[i][j];
      const cell = element("td", { text: share >= 0.1 ? Math.round(100 * share) : "" });
      if (share > 0.5) cell.className = share > 0.8 ? "strong" : "middle";
      cell.style.backgroundColor = `rgb(var(--heat), ${(0.03 + 0.97 * share).toFixed(3)})`;
      return cell;
    });
    return element("tr", {}, element("th", { scope: "row", text: piece(token) }), ...cells);
  });
  const caption = element("caption", { class: "hidden", text: "Alignment of the translation with the text" });
  const told = "Each row is a piece of the translation; the numbers tell, in percent, where it looks in the text.";
  const grid = element("table", { class: "heat" }, caption, element("thead", {}, head), element("tbody", {}, ...body));
  return [title("Alignment"), note(told), element("div", { class: "scroll", tabindex: "0" }, grid)];
}

function other(row) {
  return [element("pre", { text: JSON.stringify(row, null, 2) })];
}

// A vector as a whole, ready to be copied.
function embedding(row) {
  return [headline(`${row.embedding.length} numbers`), element("pre", { text: JSON.stringify(row.embedding) })];
}

const RENDERERS = {
  question_answering: questionAnswering, spans, entities, classification, choice, masks, translation,
  captioning,
  multi_label: multiLabel, embedding,
  regression: (row) => [headline(row.score.toFixed(4))],
};

// The answer of a row as elements; of an unknown task, or outputs that do not fit it, as JSON.
export function rendered(model, row, inputs) {
  let blocks;
  try {
    blocks = (RENDERERS[model.task] ?? other)(row, inputs, model);
  } catch {
    blocks = other(row);
  }
  if (row.truncated) blocks.push(note("The text was too long: its end was not read."));
  return blocks;
}
