// Texts to begin with, for each task: a value for each input. Images come from the server.
const LIGHTHOUSE =
  "The lighthouse of Corran Point was built in 1847 by the engineer Agnes Tulloch, who had already " +
  "drawn two harbours for the northern isles. Its tower is 31 metres high and stands on a ledge of " +
  "granite that the tide covers twice a day. The stones came from a quarry at Lessing, eleven miles " +
  "to the south, and were carried to the ledge by barge.";
const COMET =
  "🔭 In 1847 Maria Mitchell found a comet with a small telescope on the roof of a bank in " +
  "Nantucket 🌊. The king of Denmark gave her a gold medal for it.";

const QUESTIONS = [
  { question: "Who built the lighthouse?", context: LIGHTHOUSE },
  { question: "How high is the tower?", context: LIGHTHOUSE },
  { question: "What did the king give to Maria Mitchell?", context: COMET },
];

const EXAMPLES = {
  question_answering: QUESTIONS,
  spans: QUESTIONS,
  entities: [
    "Agnes Tulloch drew two harbours before she came to Corran Point.",
    "The slate went by rail to Perrin and from there by ship to Rotterdam.",
    "Clara Haskil played Mozart in Vienna with the Berlin Philharmonic.",
  ],
  classification: [
    "A film of rare warmth, and funny to its last minute.",
    "Two hours too long, and no idea of what to do with them.",
    "My order came broken. How do I send it back?",
  ],
  multi_label: [
    "Thank you so much, I had not expected that!",
    "My order came broken, and nobody answers me.",
    "The tower is 31 metres high.",
  ],
  regression: ["A film of rare warmth, and funny to its last minute.", "Two hours too long."],
  pair: [
    { text_a: "Who wrote the letter?", text_b: "The letter was written by Agnes Tulloch." },
    { text_a: "A man plays the violin.", text_b: "Somebody is making music." },
    { text_a: "A man plays the violin.", text_b: "The harbour is empty." },
  ],
  embedding: ["A man plays the violin.", "Somebody is making music.", "The harbour is empty."],
  choice: [
    {
      context: "It had rained all night, and the path was",
      choices: "muddy.\na small violin.\nolder than the king.",
    },
  ],
  masks: ["The tower stands on a [MASK] of granite.", "She played the [MASK] in the evening."],
  translation: [
    "Yesterday my mother visited the museum in the city.",
    "Is Anna feeding the dog in the kitchen?",
    "My parents do not draw a picture in the living room in the evening.",
  ],
};

const PAIRS = ["classification", "multi_label"];

// The examples of a model whose inputs have these names, each as name -> value.
export function examplesOf(model, names) {
  const found = model.examples ?? EXAMPLES[PAIRS.includes(model.task) && model.pair ? "pair" : model.task] ?? [];
  return found
    .map((one) => (typeof one === "string" ? { [names[0]]: one } : one))
    .filter((one) => names.every((name) => name in one));
}
