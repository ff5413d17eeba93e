"""Training of a byte-level BPE, from texts to a vocabulary and its merges."""

import json
from collections.abc import Iterable, Iterator

from kbert.extras import install_extra
from kbert.text.vocabulary import ROBERTA_TOKENS, Vocabulary

# In the order of their ids, as in the published models.
SPECIALS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
LEAST_VOCABULARY_SIZE = 256 + len(SPECIALS)
# A pair that occurs once is likely a typo.
_LEAST_COUNT = 2


def train_byte_level_bpe(
    texts: Iterable[str], vocabulary_size: int
) -> tuple[Vocabulary, list[tuple[str, str]]]:
    """Learns merges from texts; the same texts produce the same merges.

    Args:
        texts: Any number of texts, such as lines; they are read once.
        vocabulary_size: The most tokens, at least 261: five special ones and 256 bytes. There are
            less where no pair of tokens occurs twice any more.

    Returns:
        The vocabulary with `ROBERTA_TOKENS`, and the merges, both for `ByteLevelBPE`.

    Raises:
        ImportError: The package tokenizers is missing.
        TypeError: `texts` are no strings.
        ValueError: `vocabulary_size` is too small.

    Source: Hugging Face `tokenizers`' BpeTrainer, with which models of RoBERTa are made.
    """
    try:
        import tokenizers
    except ImportError as error:
        raise ImportError(
            f"Training a byte-level BPE needs tokenizers: {install_extra('bpe')}"
        ) from error
    if not isinstance(vocabulary_size, int) or vocabulary_size < LEAST_VOCABULARY_SIZE:
        raise ValueError(
            f"`vocabulary_size` must be an integer of at least {LEAST_VOCABULARY_SIZE}, for the "
            f"special tokens and 256 bytes. Received: vocabulary_size={vocabulary_size!r}"
        )
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise TypeError(f"`texts` must be several texts. Received: {texts!r:.80}")
    learner = tokenizers.ByteLevelBPETokenizer()
    learner.train_from_iterator(
        _strings(texts),
        vocab_size=vocabulary_size,
        min_frequency=_LEAST_COUNT,
        show_progress=False,
        special_tokens=list(SPECIALS),
    )
    ids = learner.get_vocab()
    merges = json.loads(learner.to_str())["model"]["merges"]
    vocabulary = Vocabulary(sorted(ids, key=ids.__getitem__), ROBERTA_TOKENS)
    return vocabulary, [(left, right) for left, right in merges]


def _strings(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"`texts` must hold strings. Received: {text!r:.80}")
        yield text
