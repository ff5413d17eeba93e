"""Models for the page whose answers can be read off their code."""

from types import SimpleNamespace
from typing import Any

import tensorflow as tf

# One that NumPy, Python and JavaScript count differently: five code points, seven units of UTF-16.
ROBOT = "\U0001f916 bö\U0001f600"


def text_spec(*names: str) -> list[tf.TensorSpec]:
    return [tf.TensorSpec((None,), tf.string, name=name) for name in names]


def rows(text: tf.Tensor, value: Any) -> tf.Tensor:
    """The same value in each row."""
    value = tf.convert_to_tensor(value)
    return tf.tile(value[None], [tf.shape(text)[0], *[1] * value.shape.rank])


class Plain:
    """What an export's bundle asks of a model: how long a text may be."""

    max_sequence_length = 16
    pair = False

    def preprocess(self, text: Any, context: Any = None) -> Any:
        """One token a byte, so that lengths can be chosen."""
        ids = tf.strings.bytes_split(text)[:, :16]
        lengths = tf.cast(ids.row_lengths(), tf.int32)
        ids = tf.cast(tf.strings.to_hash_bucket_fast(ids, 9).to_tensor(), tf.int32)
        return SimpleNamespace(token_ids=ids, segment_ids=tf.zeros_like(ids), lengths=lengths)


class Finder(Plain):
    """Finds the robot in the context."""

    name = "finder"

    def find(self, question: tf.Tensor, context: tf.Tensor) -> dict[str, tf.Tensor]:
        before = tf.strings.split(context, ROBOT)[:, :1].to_tensor("", shape=(None, 1))[:, 0]
        start = tf.strings.length(before, "UTF8_CHAR")
        found = tf.strings.regex_full_match(context, f"(?s).*{ROBOT}.*")
        answer = tf.where(found, ROBOT, "")
        return {
            "answer": answer,
            "start": start,
            "end": start + tf.strings.length(answer, "UTF8_CHAR"),
            "score": rows(question, 0.75),
            "has_answer": found,
            "nbest_answer": tf.stack([answer, tf.fill(tf.shape(answer), "nobody")], 1),
            "nbest_score": rows(question, [0.75, 0.25]),
            "nbest_start": rows(question, [0, 0]),
            "nbest_end": rows(question, [0, 0]),
        }

    def signatures(self) -> dict[str, Any]:
        return {"serving_default": (self.find, text_spec("question", "context"))}


class Namer(Plain):
    """Two names, at fixed places after a first character beyond 16 bits."""

    name = "namer"
    labels = ["O", "B-PER", "I-PER", "B-LOC"]

    def names(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        return {
            "count": rows(text, 2),
            "entity": rows(text, ["Ada", "Bob", ""]),
            "label": rows(text, ["PER", "LOC", ""]),
            "score": rows(text, [0.9, 0.8, 0.0]),
            "start": rows(text, [2, 12, 0]),
            "end": rows(text, [5, 15, 0]),
        }

    def signatures(self) -> dict[str, Any]:
        return {"serving_default": (self.names, text_spec("text"))}


class Sorter(Plain):
    """Always the same class; fails at the text "fail"."""

    name = "sorter"
    labels = ["bad", "<b>good</b>"]

    def sort(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        scores = rows(text, [0.25, 0.75])
        place = tf.where(text == "fail", 9, 1)
        with tf.control_dependencies([tf.debugging.assert_less(place, 2)]):
            label = tf.gather(self.labels, place)
        return {
            "label": label,
            "score": scores[:, 1],
            "scores": scores,
            "labels": rows(text, self.labels),
        }

    def signatures(self) -> dict[str, Any]:
        return {"serving_default": (self.sort, text_spec("text"))}


class Talker(Plain):
    """Always the same translation, and what it comes from."""

    name = "talker"

    def translate(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        return {
            "translation": rows(text, "b a"),
            "score": rows(text, -0.5),
            "nbest_translation": rows(text, ["b a", "a b"]),
            "nbest_score": rows(text, [-0.5, -1.5]),
        }

    def align(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        shares = [[0.25, 0.75, 0.0, 0.0], [0.75, 0.25, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]
        return {
            "translation": rows(text, "b a"),
            "source_tokens": rows(text, ["▁a", "▁b", "</s>", ""]),
            "target_tokens": rows(text, ["▁b", "a", "</s>"]),
            "source_lengths": rows(text, 3),
            "target_lengths": rows(text, 3),
            "alignment": rows(text, shares),
        }

    def signatures(self) -> dict[str, Any]:
        return {
            "serving_default": (self.translate, text_spec("text")),
            "alignment": (self.align, text_spec("text")),
        }


# Pieces of a caption, and the map (2, 3) of each: "gi" looks at the top left, "ant" at the right.
PIECES = ("▁a", "▁gi", "ant", "▁d", "<0xC3>", "<0xB6>", "g", "</s>", "")
EVEN, DARK = [[1 / 6] * 3] * 2, [[0.0] * 3] * 2
LEFT, RIGHT, BELOW = [[1, 0, 0], [0, 0, 0]], [[0, 0, 1], [0, 0, 0]], [[0, 0, 0], [0, 1, 0]]
MAPS = (EVEN, LEFT, RIGHT, *[BELOW] * 4, EVEN, DARK)


class Teller:
    """Says the same of each JPEG or PNG, and how large it is as its second best caption."""

    name = "teller"
    image_fit = "squeeze"

    def tell(self, image: tf.Tensor) -> dict[str, tf.Tensor]:
        problem, (caption, score) = self.problem(image), self.best(image)
        sizes = tf.strings.as_string(self.sizes(image))
        second = tf.strings.join([sizes[:, 1], sizes[:, 0]], " x ")
        scores = rows(image, [-0.25, -1.5, float("-inf")])
        return {
            "caption": caption,
            "score": score,
            "nbest_caption": tf.stack([caption, second, tf.fill(tf.shape(image), "")], 1),
            "nbest_score": tf.where(problem[:, None] == "", scores, 0.0),
            "problem": problem,
        }

    def attend(self, image: tf.Tensor) -> dict[str, tf.Tensor]:
        problem, (caption, score) = self.problem(image), self.best(image)
        is_well = problem == ""
        return {
            "caption": caption,
            "score": score,
            "tokens": tf.where(is_well[:, None], rows(image, PIECES), ""),
            "attention": tf.where(is_well[:, None, None, None], rows(image, MAPS), 0.0),
            "problem": problem,
        }

    def problem(self, image: tf.Tensor) -> tf.Tensor:
        known = (tf.strings.substr(image, 0, 3) == b"\xff\xd8\xff") | (
            tf.strings.substr(image, 0, 4) == b"\x89PNG"
        )
        known &= tf.strings.length(image) > 60  # not the beginning of one
        return tf.where(known, "", "it is no image of a known format")

    def best(self, image: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        is_well = self.problem(image) == ""
        return tf.where(is_well, "a giant dög", ""), tf.where(is_well, -0.25, 0.0)

    def sizes(self, image: tf.Tensor) -> tf.Tensor:
        def size(one: tf.Tensor) -> tf.Tensor:
            def known() -> tf.Tensor:
                return tf.shape(tf.io.decode_jpeg(one, channels=3))[:2]

            return tf.cond(self.problem(one) == "", known, lambda: tf.zeros((2,), tf.int32))

        return tf.map_fn(size, image, fn_output_signature=tf.TensorSpec((2,), tf.int32))

    def signatures(self) -> dict[str, Any]:
        return {
            "serving_default": (self.tell, text_spec("image")),
            "attention": (self.attend, text_spec("image")),
        }
