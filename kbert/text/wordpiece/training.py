"""Training of a WordPiece vocabulary, from texts to the tokens of a `vocab.txt`."""

import functools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from tensorflow_text.tools.wordpiece_vocab import wordpiece_tokenizer_learner_lib as learner

from kbert.text.vocabulary import BERT_TOKENS, Vocabulary
from kbert.text.wordpiece.normalization import NormalizationRules

# In the order of their ids.
SPECIALS = (BERT_TOKENS.padding, *BERT_TOKENS.required[:3], BERT_TOKENS.mask)
# Rarer characters become unknown, and words with them are ignored in training.
MAX_CHARACTERS = 1000
# A word that occurs once is likely a typo.
_LEAST_COUNT = 2


def count_words(batches: Iterable[Sequence[str]], lowercase: bool = True) -> Counter[str]:
    """Counts words of batches of texts as `WordPiece` sees them, normalized.

    tensorflow-text's BasicTokenizer would not do: it folds case (a German sharp s becomes "ss") and
    compatibility characters, and tokens of such words would match no text.
    """
    table = _normalized(lowercase)
    counts: Counter[str] = Counter()
    for batch in batches:
        for text in batch:
            counts.update(text.translate(table).split(" "))
    del counts[""]
    return counts


@functools.lru_cache(maxsize=2)
def _normalized(lowercase: bool) -> dict[int, str]:
    """Returns the replacement of each code point that changes, with spaces between words."""
    rules = NormalizationRules(lowercase, strip_accents=lowercase, handle_cjk=True)
    apart = frozenset(np.flatnonzero(rules.isolated()).tolist())
    changed = {**{point: (point,) for point in apart}, **rules.replacements()}
    table = {
        point: "".join(f" {chr(one)} " if one in apart else chr(one) for one in those)
        for point, those in changed.items()
    }
    table |= dict.fromkeys(np.flatnonzero(rules.white_space()).tolist(), " ")
    table |= dict.fromkeys(np.flatnonzero(rules.dropped()).tolist(), "")
    return table | dict.fromkeys(range(0xD800, 0xE000), " ? ")  # surrogates: no UTF-8 has them


def train_wordpiece(counts: Mapping[str, int], vocabulary_size: int) -> Vocabulary:
    """Learns tokens from counted words; the same words produce the same tokens.

    `counts` are from `count_words`, and `vocabulary_size` is the most tokens, special ones and
    single characters included. There may be a few per cent less, or as many as the words allow:
    special tokens, single characters, then the rest by frequency.

    Source: tensorflow-text's learner, which selects frequent pieces from the longest down.
    """
    if not counts:
        raise ValueError("`counts` must hold words. Received: none")
    tokens = learner.learn(
        # The learner breaks ties by the order of words.
        sorted(counts.items(), key=lambda one: (-one[1], one[0])),
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
