// Images of the form: chosen or dropped, made small before they are sent, and shown.
import { element } from "/web/answers.js";

// A file is sent as it is, unless a side has more pixels or it has more bytes, or than the server takes:
// then as JPEG of this quality.
const LONGEST_SIDE = 1024;
const LARGE_BYTES = 2 ** 20;
const QUALITY = 0.9;
// Bytes of a request around the image.
const AROUND = 500;
// Name of each input -> { image, error, ready }: `ready` is settled when one of the others is known.
const boxes = new Map();

// Width and height with the longest side at most, or exactly, of so many pixels.
export function fitted(width, height, longest, exactly = false) {
  const scale = longest / Math.max(width, height);
  const used = exactly ? scale : Math.min(1, scale);
  return [width, height].map((side) => Math.max(1, Math.round(side * used)));
}

export function sizeInWords(bytes) {
  return bytes < 999_500 ? `${Math.ceil(bytes / 1000)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

// Whether a file, as base64, fits into a request.
export const fits = (bytes, most) => 4 * Math.ceil(bytes / 3) + AROUND <= most;

// What a model sees, transparent parts on white; none if the browser does not know the format.
async function pictureOf(file) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    return null;
  }
  const [width, height] = fitted(bitmap.width, bitmap.height, LONGEST_SIDE);
  const canvas = element("canvas", { width, height });
  const context = canvas.getContext("2d");
  context.fillStyle = "#fff";
  context.fillRect(0, 0, width, height);
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, 0, 0, width, height);
  const isSmaller = width < bitmap.width || height < bitmap.height;
  bitmap.close();
  return { canvas, isSmaller };
}

async function base64(blob) {
  const bytes = new Uint8Array(await blob.arrayBuffer());
  let text = "";
  for (let start = 0; start < bytes.length; start += 2 ** 15) {
    text += String.fromCharCode(...bytes.subarray(start, start + 2 ** 15));
  }
  return btoa(text);
}

// A file as it is sent: as JSON it is {"b64": ...}. Throws if a request of `most` bytes cannot hold it.
async function prepared(file, most) {
  const picture = await pictureOf(file);
  let sent = file;
  if (picture && (picture.isSmaller || file.size > LARGE_BYTES || !fits(file.size, most))) {
    sent = await new Promise((take) => picture.canvas.toBlob(take, "image/jpeg", QUALITY));
  }
  if (!fits(sent.size, most)) {
    throw new Error(
      `The file is too large: it has ${sizeInWords(sent.size)}, and this server takes at most ` +
        `${sizeInWords((3 * (most - AROUND)) / 4)} (its --max-request-bytes, less what base64 adds).`,
    );
  }
  const b64 = await base64(sent);
  const size = picture ? `${picture.canvas.width} × ${picture.canvas.height} pixels, ` : "";
  const told =
    sent === file
      ? `${size}${sizeInWords(file.size)}`
      : `Sent smaller, as JPEG: ${size}${sizeInWords(sent.size)} instead of ${sizeInWords(file.size)}`;
  return { name: file.name, b64, told, picture: picture?.canvas, toJSON: () => ({ b64 }) };
}

// A file of a data URL.
function fileOf(url, name) {
  const [head, code] = url.split(",");
  const bytes = Uint8Array.from(atob(code), (letter) => letter.charCodeAt(0));
  return new File([bytes], name, { type: head.slice("data:".length).split(";")[0] });
}

// The image of an input; throws if there is none.
export function imageOf(name) {
  const { image, error } = boxes.get(name) ?? {};
  if (!image) throw new Error(error ?? "Choose an image first.");
  return image;
}

// Waits until the chosen images are read.
export const imagesReady = () => Promise.all([...boxes.values()].map((box) => box.ready));

export const forgetImages = () => boxes.clear();

// The place to choose or drop the image of an input. `changed` is called when it is another one.
export function imageField(name, label, most, changed) {
  const id = `field-${name}`;
  const told = element("p", { class: "quiet told", text: "Or drop one here." });
  const box = element("input", { id, name, type: "file", accept: "image/*" });
  const preview = element("div", { class: "preview" });
  const zone = element("div", { class: "drop" }, box, told, preview);

  async function read(file, state) {
    try {
      state.image = await prepared(file, most);
    } catch (error) {
      state.error = error instanceof DOMException ? "The file cannot be read." : error.message;
    }
    if (boxes.get(name) !== state) return;
    told.textContent = state.error ?? state.image.told;
    told.classList.toggle("bad", "error" in state);
    preview.replaceChildren(...(state.image?.picture ? [state.image.picture] : []));
    changed();
  }
  function take(file) {
    const state = {};
    boxes.set(name, state);
    state.ready = read(file, state);
  }
  box.addEventListener("change", () => {
    if (box.files.length) take(box.files[0]);
  });
  zone.take = (file) => {
    const list = new DataTransfer();
    list.items.add(file);
    box.files = list.files;
    take(file);
  };
  for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) {
    zone.addEventListener(kind, (event) => {
      event.preventDefault();
      zone.classList.toggle("over", kind === "dragenter" || kind === "dragover");
      if (kind === "drop" && event.dataTransfer.files.length) zone.take(event.dataTransfer.files[0]);
    });
  }
  return element("div", { class: "field" }, element("label", { for: id, text: label }), zone);
}

// Chooses an example: { title, url }.
export function fillImage(name, { title, url }) {
  document.getElementById(`field-${name}`).parentElement.take(fileOf(url, `${title}.png`));
}

// A small picture of an example.
export function thumbnail({ title, url }) {
  const canvas = element("canvas", { width: 96, height: 96, role: "img", "aria-label": title });
  pictureOf(fileOf(url, title)).then((picture) => {
    if (picture) canvas.getContext("2d").drawImage(picture.canvas, 0, 0, 96, 96);
  });
  return canvas;
}
