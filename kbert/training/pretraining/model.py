"""The model of a pretraining run: new with a vocabulary, or continued; and its evaluation."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kbert.architectures import BERT, encoder_class
from kbert.data.pretraining.corpus import Corpus
from kbert.optimization.adamw import AdamW
from kbert.optimization.schedules import WarmupLinearDecay
from kbert.tasks.pretraining.model import MaskedLanguageModel
from kbert.tasks.pretraining.objectives import is_causal
from kbert.text.vocabulary import Vocabulary
from kbert.text.wordpiece.training import count_words, train_wordpiece
from kbert.text.wordpiece.wordpiece import WordPiece
from kbert.training.config.pretraining_config import PretrainingConfig
from kbert.training.pretraining.sources import Source, validation_batches
from kbert.training.runs.run_directory import model_of
from kbert.training.runs.stopped_runs import check_unchanged

_SIZES = ("num_layers", "hidden_dim", "num_heads", "intermediate_dim")
_OF_TRAINING = ("attention_dropout", "gradient_checkpointing")
_STRIDE = 32
VOCABULARY = "vocab.txt"
# Number of characters from which a vocabulary is learned, in random blocks.
_MOST_CHARACTERS = 1 << 28
# Options that determine the tokens.
_OF_VOCABULARY = ("vocabulary", "vocabulary_size", "lowercase")


def build_pretrained(
    config: PretrainingConfig, vocabulary: Vocabulary | None
) -> MaskedLanguageModel:
    """Creates the model of a run; heads that an encoder lacks are new, and a warning names them.

    A model with a vocabulary is new; None continues the configuration's encoder.
    """
    length = config.max_sequence_length
    typed: dict[str, Any] = {
        "dtype": config.precision,
        "objective": config.objective,
        "max_sequence_length": length,
        "stride": min(_STRIDE, length // 4),
    }
    encoder: dict[str, Any] = {name: getattr(config, name) for name in _OF_TRAINING}
    encoder["causal"] = is_causal(config.objective)
    if vocabulary is None:
        source = model_of(config.encoder or "")
        encoder["encoder_dropout"] = config.dropout
        return MaskedLanguageModel.from_pretrained(source, from_other_task=True, **encoder, **typed)
    given = {name: getattr(config, name) for name in _SIZES}
    new = encoder_class(BERT).from_size(
        config.size,
        len(vocabulary),
        max_sequence_length=config.positions,
        dropout=config.dropout,
        dtype=config.precision,
        **{name: value for name, value in given.items() if value is not None},
        **encoder,
    )
    tokenizer = WordPiece(vocabulary, config.lowercase, special_tokens_in_text=True)
    return MaskedLanguageModel(new, tokenizer, **typed)


def compile_pretrained(model: MaskedLanguageModel, config: PretrainingConfig) -> None:
    """Compiles a model with the optimizer of Devlin et al. 2019, appendix A.2."""
    rate = WarmupLinearDecay(config.learning_rate, config.steps, config.warmup)
    optimizer = AdamW(rate, config.weight_decay, epsilon=1e-6, global_clipnorm=config.clip)
    model.compile(optimizer, steps_per_execution=config.steps_per_execution)


def run_vocabulary(
    config: PretrainingConfig, corpus: Any, kept: Path | None = None
) -> Vocabulary | None:
    """Returns the vocabulary of a new model, or None where an encoder brings its own.

    It is that of the stopped run in the folder `kept` (a ValueError if the options of tokens have
    changed), one from a file, or learned from the corpus; nothing is learned from records.
    """
    if kept is not None and (kept / VOCABULARY).is_file():
        check_unchanged(kept, config, _OF_VOCABULARY, f"the tokens in {kept / VOCABULARY}")
        if config.encoder is None:
            return Vocabulary.from_file(kept / VOCABULARY)
    if config.encoder is not None:
        return None
    if config.vocabulary_size is None:
        return Vocabulary.from_file(config.vocabulary or "")
    counts = count_words(_documents(corpus, config.seed), config.lowercase)
    if not counts:
        raise ValueError(f"`text` must hold words to learn a vocabulary from. Received: {corpus}")
    return train_wordpiece(counts, config.vocabulary_size)


def _documents(corpus: Corpus, seed: int) -> Iterator[tuple[str, ...]]:
    """Yields the documents of each block, until there are enough characters."""
    read = 0
    for block in corpus.blocks(seed):
        yield block.documents
        read += sum(map(len, block.documents))
        if read >= _MOST_CHARACTERS:
            return


def measure_pretrained(
    folder: Path, corpus: Source, config: PretrainingConfig, steps: int | None = None
) -> dict[str, float]:
    """Returns losses, accuracies and perplexity of a saved model in float32, in which it is used.

    They are of the first `steps` batches; None for all.
    """
    model = MaskedLanguageModel.from_pretrained(folder, dtype="float32")
    model.compile()
    batches = validation_batches(config, corpus, model.tokenizer, steps)
    return dict(model.evaluate(batches, verbose=0, return_dict=True))


def config_of_model(folder: Path) -> PretrainingConfig:
    """Returns options of making examples for a model without a run."""
    model: Any = MaskedLanguageModel.from_pretrained(folder)
    return PretrainingConfig(
        text=["-"],
        encoder=str(folder),
        output="-",
        objective=model.objective,
        max_sequence_length=model.max_sequence_length,
    )
