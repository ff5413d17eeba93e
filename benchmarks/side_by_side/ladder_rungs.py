"""From one vector to attention: translation models of about ten million weights each."""

from pathlib import Path
from typing import Any

from side_by_side.multi30k_data import Split
from side_by_side.multi30k_models import ENCODER
from side_by_side.translation_scores import tokenized_bleu
from side_by_side.translation_training import Recipe

from kbert.architectures import BERT_FUSED, encoder_decoder_class
from kbert.checkpoints.read_checkpoint import read_checkpoint
from kbert.models.encoder import encoder_of
from kbert.pipelines.tokenizers import tokenizer_of
from kbert.tasks.translation.model import Translator
from kbert.text.subword import Subword

_TRANSFORMER = {
    "hidden_dim": 256,
    "num_encoder_layers": 4,
    "num_decoder_layers": 4,
    "num_heads": 4,
    "intermediate_dim": 1024,
}
SIZES: dict[str, dict[str, Any]] = {
    "rnn": {"hidden_dim": 704, "embedding_dim": 256},
    "bahdanau": {"hidden_dim": 512, "embedding_dim": 256},
    "convs2s": {"hidden_dim": 256, "num_encoder_layers": 8, "num_decoder_layers": 8},
    "transformer": _TRANSFORMER,
    BERT_FUSED: _TRANSFORMER,
}
# Architecture, arguments beside its size, the peak of the rate, and dropout.
RUNGS: dict[str, tuple[str, dict[str, Any], float, float]] = {
    "no attention": ("rnn", {}, 1e-3, 0.3),
    "reversed source": ("rnn", {"reversed_source": True}, 1e-3, 0.3),
    "bahdanau": ("bahdanau", {}, 1e-3, 0.3),
    "convs2s": ("convs2s", {}, 3e-3, 0.15),
    "transformer": ("transformer", {}, 7e-4, 0.1),
    "bert-fused": (BERT_FUSED, {}, 7e-4, 0.1),
}


def made(rung: str, pieces: Subword, dropout: float, dtype: str) -> Translator:
    """A new translator on the pieces of both languages."""
    architecture, arguments, *_ = RUNGS[rung]
    given = {**SIZES[architecture], **arguments, "dropout": dropout, "dtype": dtype}
    tokenizer = None
    if architecture == BERT_FUSED:
        checkpoint = read_checkpoint(ENCODER)
        tokenizer = tokenizer_of(checkpoint)
        given["bert"] = encoder_of(checkpoint, needs_pooler=False, dtype=dtype)
    model = encoder_decoder_class(architecture)(len(pieces), **given)
    return Translator(model, pieces, pieces, tokenizer, dtype=dtype)


def recipe(rung: str, epochs: int, tokens: int, seed: int) -> Recipe:
    """All rungs learn alike but for rate and dropout; the mean of the last epochs is kept."""
    return Recipe(epochs, RUNGS[rung][2], 400, 3, tokens, seed, epochs // 3, clip=1.0)


def by_length(hypotheses: list[str], split: Split, parts: int) -> list[dict[str, float]]:
    """BLEU of as many equal parts of a test set, from the shortest sources to the longest."""
    order = sorted(range(len(split.sources)), key=lambda i: len(split.sources[i].split()))
    size = len(order) / parts
    found = []
    for number in range(parts):
        rows = order[round(number * size) : round((number + 1) * size)]
        words = [len(split.sources[i].split()) for i in rows]
        bleu = tokenized_bleu([hypotheses[i] for i in rows], [split.targets[i] for i in rows])
        mean = round(sum(words) / len(words), 1)
        found.append({"words": mean, "bleu": bleu["tokenized_lowercase_bleu"]})
    return found


def run_folder(runs: Path, rung: str, direction: str, seed: int) -> Path:
    """The folder of a run."""
    return runs / f"{rung.replace(' ', '-')}-{direction}-{seed}"
