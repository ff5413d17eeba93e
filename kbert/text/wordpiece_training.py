"""Training of a WordPiece vocabulary: from texts to the tokens of a `vocab.txt`."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import tensorflow as tf
from tensorflow_text.python.ops.bert_tokenizer import BasicTokenizer
from tensorflow_text.tools.wordpiece_vocab import wordpiece_tokenizer_learner_lib as learner

from kbert.text.vocabulary import CLS, MASK, PADDING, SEP, UNKNOWN, Vocabulary

# In the order of their ids.
SPECIALS = (PADDING, UNKNOWN, CLS, SEP, MASK)
# Rarer characters become unknown, and words with them are not learned from.
MAX_CHARACTERS = 1000
# A word that occurs once is as likely a slip of the pen.
_LEAST_COUNT = 2


def count_words(batches: Iterable[Sequence[str]], lowercase: bool = True) -> Counter[str]:
    """Counts words as BERT splits them: at white space, punctuation and ideographs.

    Args:
        batches: texts, some at a time.
        lowercase: whether letters are lower-cased and lose their accents.
    """
    basic = BasicTokenizer(lower_case=lowercase)

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.string)], autograph=False)
    def words(texts: tf.Tensor) -> tf.Tensor:
        # Not on a GPU, which would have to copy all of it there and back.
        with tf.device("CPU:0"):
            return basic.tokenize(texts).flat_values

    counts: Counter[bytes] = Counter()
    for batch in batches:
        encoded = [text.encode("utf-8", "replace") for text in batch]
        counts.update(words(tf.constant(encoded, tf.string, (len(encoded),))).numpy().tolist())
    return Counter({word.decode("utf-8", "replace"): count for word, count in counts.items()})


def train_wordpiece(counts: Mapping[str, int], vocabulary_size: int) -> Vocabulary:
    """Learns tokens from counted words; the same words give the same tokens.

    Source: tensorflow-text's learner, which takes what is frequent from the longest piece down.

    Args:
        counts: how often each word occurs, from `count_words`.
        vocabulary_size: the most tokens, special ones and single characters included. There may be
            a few per cent less, or as many as the words give.

    Returns:
        The vocabulary: special tokens, single characters, then the rest by their frequency.

    Raises:
        ValueError: there are no words, or the single characters alone are more tokens.
    """
    if not counts:
        raise ValueError("`counts` must hold words. Received: none")
    # Ties keep the order in which words come.
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    tokens = learner.learn(
        ordered,
        vocabulary_size,
        list(SPECIALS),
        lower_thresh=_LEAST_COUNT,
        max_unique_chars=MAX_CHARACTERS,
    )
    if len(tokens) > vocabulary_size:
        # The learner's search ended with its smallest vocabulary: nearly single characters alone.
        raise ValueError(
            f"`vocabulary_size` must be at least {len(tokens)} for the characters of these words. "
            f"Received: vocabulary_size={vocabulary_size}"
        )
    return Vocabulary(tokens)
