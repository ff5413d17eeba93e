"""From one vector to attention: translation models of about ten million weights each."""

from pathlib import Path
from typing import Any, NamedTuple

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


class Rung(NamedTuple):
    """An architecture of `SIZES`, and how it learns.

    Attributes:
        rate: the highest one.
        arguments: beside its size and dropout.
        start: the rung whose trained weights it begins with.
    """

    architecture: str
    rate: float
    dropout: float
    epochs: int = 12
    arguments: dict[str, Any] = {}
    start: str | None = None


RUNGS = {
    "no attention": Rung("rnn", 1e-3, 0.3),
    "no attention lstm": Rung("rnn", 1e-3, 0.3, arguments={"cell": "lstm", "hidden_dim": 616}),
    "reversed source": Rung("rnn", 1e-3, 0.3, arguments={"reversed_source": True}),
    "bahdanau": Rung("bahdanau", 1e-3, 0.3),
    "convs2s": Rung("convs2s", 3e-3, 0.15),
    "transformer": Rung("transformer", 7e-4, 0.1),
    "bert-fused": Rung(BERT_FUSED, 7e-4, 0.1),
    "convs2s 24": Rung("convs2s", 3e-3, 0.2, 24),
    "transformer 24": Rung("transformer", 7e-4, 0.2, 24),
    "transformer 24+12": Rung("transformer", 7e-4, 0.2, start="transformer 24"),
    "bert-fused 24+12": Rung(BERT_FUSED, 7e-4, 0.2, start="transformer 24"),
}


def made(
    name: str, pieces: Subword, dropout: float, dtype: str, start: Path | None = None
) -> Translator:
    """A translator on the pieces of both languages, new or with the weights of a saved one."""
    rung = RUNGS[name]
    given = {**SIZES[rung.architecture], **rung.arguments, "dropout": dropout, "dtype": dtype}
    tokenizer = None
    if rung.architecture == BERT_FUSED:
        checkpoint = read_checkpoint(ENCODER)
        tokenizer = tokenizer_of(checkpoint)
        given["bert"] = encoder_of(checkpoint, needs_pooler=False, dtype=dtype)
    model = encoder_decoder_class(rung.architecture)(len(pieces), **given)
    if start is not None:
        trained = Translator.from_pretrained(start, dtype=dtype).transformer
        if rung.architecture == BERT_FUSED:
            model.warm_start_from(trained)
        else:
            model.set_weights(trained.get_weights())
    return Translator(model, pieces, pieces, tokenizer, dtype=dtype)


def recipe(rung: str, epochs: int, tokens: int, seed: int) -> Recipe:
    """Rungs differ in rate, dropout and epochs; the mean of the last three epochs is kept."""
    return Recipe(epochs, RUNGS[rung].rate, 400, 3, tokens, seed, epochs // 3, clip=1.0)


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
