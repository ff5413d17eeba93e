// Where each word of a caption was looked for: maps over the image.
import { element, note, title } from "/web/answers.js";
import { fitted } from "/web/images.js";

// Longest sides in pixels of the image in the answer, and of the small maps.
const LARGE = 512;
const SMALL = 160;

// Pieces as text; those of byte fallback, such as <0xC3>, are bytes of UTF-8.
function joined(pieces) {
  const bytes = pieces.flatMap((piece) => {
    const byte = /^<0x([0-9A-F]{2})>$/.exec(piece);
    if (byte) return [parseInt(byte[1], 16)];
    return [...new TextEncoder().encode(piece === "<unk>" ? "⁇" : piece)];
  });
  return new TextDecoder().decode(Uint8Array.from(bytes)).replaceAll("▁", " ").trim();
}

const meanOf = (maps) =>
  maps[0].map((row, y) => row.map((_, x) => maps.reduce((sum, map) => sum + map[y][x], 0) / maps.length));

// The words of SentencePiece's pieces, without the end, each with the mean of its pieces' maps.
export function captionWords(tokens, maps) {
  const found = [];
  tokens.forEach((token, i) => {
    if (token === "" || token === "</s>") return;
    if (token.startsWith("▁") || !found.length) found.push({ pieces: [], maps: [] });
    found.at(-1).pieces.push(token);
    found.at(-1).maps.push(maps[i]);
  });
  return found
    .map((word) => ({ text: joined(word.pieces), map: meanOf(word.maps) }))
    .filter((word) => word.text !== "");
}

// Of each place in a row of `to`: the two places in one of `from` between which it lies, and where.
function between(from, to) {
  return Array.from({ length: to }, (_, i) => {
    const place = Math.min(Math.max(((i + 0.5) * from) / to - 0.5, 0), from - 1);
    const low = Math.floor(place);
    return [low, Math.min(low + 1, from - 1), place - low];
  });
}

// A map in another size, by bilinear interpolation; row after row.
export function upscaled(map, height, width) {
  const columns = between(map[0].length, width);
  const found = new Float32Array(height * width);
  between(map.length, height).forEach(([top, bottom, down], y) => {
    columns.forEach(([left, right, across], x) => {
      const above = map[top][left] * (1 - across) + map[top][right] * across;
      const below = map[bottom][left] * (1 - across) + map[bottom][right] * across;
      found[y * width + x] = above * (1 - down) + below * down;
    });
  });
  return found;
}

// Red, green, blue and opacity, each 0 to 255: a dark veil at 0, and a light of warm colours at 1.
const STOPS = [
  [10, 12, 32, 190],
  [120, 28, 109, 135],
  [237, 105, 37, 85],
  [255, 214, 70, 55],
];

export function heatColour(share) {
  const place = Math.min(Math.max(share, 0), 1) * (STOPS.length - 1);
  const low = Math.min(Math.floor(place), STOPS.length - 2);
  return STOPS[low].map((one, i) => one + (place - low) * (STOPS[low + 1][i] - one));
}

// The part of an image that a map of (h, w) covers, as x, y, width and height: all of it, or, of one
// that was cropped, its middle in the map's aspect ratio.
export function coveredPart(width, height, map, fit) {
  if (fit !== "crop") return [0, 0, width, height];
  const scale = Math.min(width / map[0].length, height / map.length);
  const [across, down] = [Math.round(map[0].length * scale), Math.round(map.length * scale)];
  return [Math.floor((width - across) / 2), Math.floor((height - down) / 2), across, down];
}

// Lays a map over what a canvas shows; its largest value is the brightest.
function layOver(canvas, map, fit) {
  const [x, y, width, height] = coveredPart(canvas.width, canvas.height, map, fit);
  const most = Math.max(...map.flat(), 1e-9);
  const cover = element("canvas", { width: canvas.width, height: canvas.height });
  const context = cover.getContext("2d");
  const [red, green, blue, opacity] = STOPS[0];
  context.fillStyle = `rgb(${red} ${green} ${blue} / ${opacity / 255})`;
  context.fillRect(0, 0, cover.width, cover.height);
  const pixels = context.createImageData(width, height);
  upscaled(map, height, width).forEach((value, i) => pixels.data.set(heatColour(value / most), 4 * i));
  context.putImageData(pixels, x, y);
  canvas.getContext("2d").drawImage(cover, 0, 0);
}

function pictured(picture, longest, map, fit) {
  const [width, height] = fitted(picture.width, picture.height, longest, true);
  const canvas = element("canvas", { width, height });
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(picture, 0, 0, width, height);
  if (map) layOver(canvas, map, fit);
  return canvas;
}

// The image, which shows the map of the word that is hovered or focused, or else of the pressed one.
export function attentionMaps(row, image, fit) {
  const words = captionWords(row.tokens, row.attention);
  if (!words.length) return [];
  const heading = title("Where each word looks");
  if (!image.picture) return [heading, note("The browser cannot show this image.")];
  const plain = pictured(image.picture, LARGE);
  const large = words.map(() => null);
  const stage = element("div", { class: "stage", role: "img", "aria-label": "The image" }, plain);
  const buttons = words.map(({ text }) =>
    element("button", { type: "button", class: "word", dir: "auto", "aria-pressed": "false", text }),
  );
  const small = words.map(({ text, map }) => {
    const canvas = pictured(image.picture, SMALL, map, fit);
    return element("li", {}, canvas, element("span", { dir: "auto", text }));
  });
  let pressed = -1;
  function show(at) {
    if (at >= 0) large[at] ??= pictured(image.picture, LARGE, words[at].map, fit);
    stage.replaceChildren(at < 0 ? plain : large[at]);
    stage.setAttribute("aria-label", at < 0 ? "The image" : `The map of “${words[at].text}” over the image`);
    [buttons, small].forEach((all) => all.forEach((one, i) => one.classList.toggle("shown", i === at)));
  }
  function press(at) {
    pressed = pressed === at ? -1 : at;
    buttons.forEach((one, i) => one.setAttribute("aria-pressed", String(i === pressed)));
    show(at);
  }
  [buttons, small].forEach((all) =>
    all.forEach((one, i) => {
      one.addEventListener("mouseenter", () => show(i));
      one.addEventListener("mouseleave", () => show(pressed));
      one.addEventListener("click", () => press(i));
    }),
  );
  buttons.forEach((one, i) => {
    one.addEventListener("focus", () => show(i));
    one.addEventListener("blur", () => show(pressed));
  });
  const told = "Point at a word, or go to it with Tab: where the model looked for it is light. A click keeps it.";
  return [
    heading,
    note(told),
    element("div", { class: "words", role: "group", "aria-label": "Words of the caption" }, ...buttons),
    stage,
    element("ul", { class: "maps", "aria-label": "Maps of all words" }, ...small),
  ];
}
