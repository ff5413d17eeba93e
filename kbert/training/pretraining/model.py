"""The model of a pretraining run: new with a vocabulary, or continued; and its evaluation."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from kbert.architectures import ENCODERS, encoder_class
from kbert.data.pretraining.corpus import Corpus
from kbert.optimization.adamw import AdamW
from kbert.optimization.schedules import WarmupLinearDecay
from kbert.pipelines.tokenizers import tokenizer_of_file
from kbert.tasks.pretraining.model import MaskedLanguageModel
from kbert.tasks.pretraining.objectives import is_causal
from kbert.text.byte_level_bpe.byte_level_bpe import ByteLevelBPE
from kbert.text.byte_level_bpe.training import train_byte_level_bpe
from kbert.text.tokenizer import Tokenizer
from kbert.text.wordpiece.training import count_words, train_wordpiece
from kbert.text.wordpiece.wordpiece import WordPiece
from kbert.training.config.pretraining_config import PretrainingConfig
from kbert.training.pretraining.sources import Source, validation_batches
from kbert.training.runs.run_directory import model_of
from kbert.training.runs.stopped_runs import check_unchanged

_SIZES = ("num_layers", "hidden_dim", "num_heads", "intermediate_dim")
_OF_TRAINING = ("attention_dropout", "gradient_checkpointing")
_STRIDE = 32
# Of a WordPiece, and of a byte-level BPE.
VOCABULARIES = ("vocab.txt", "vocab.json")
# Number of characters from which a vocabulary is learned, in random blocks.
_MOST_CHARACTERS = 1 << 28
# Options that determine the tokens.
_OF_VOCABULARY = ("architecture", "vocabulary", "vocabulary_size", "lowercase")


def build_pretrained(
    config: PretrainingConfig, tokenizer: Tokenizer | None
) -> MaskedLanguageModel:
    """Creates the model of a run; heads that an encoder lacks are new, and a warning names them.

    A model with a tokenizer is new; None continues the configuration's encoder.
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
    if tokenizer is None:
        source = model_of(config.encoder or "")
        encoder["encoder_dropout"] = config.dropout
        return MaskedLanguageModel.from_pretrained(source, from_other_task=True, **encoder, **typed)
    given = {name: getattr(config, name) for name in _SIZES}
    new = encoder_class(config.architecture).from_size(
        config.size,
        len(tokenizer.vocabulary),
        max_sequence_length=config.positions,
        dropout=config.dropout,
        dtype=config.precision,
        **{name: value for name, value in given.items() if value is not None},
        **encoder,
    )
    return MaskedLanguageModel(new, tokenizer, **typed)


def compile_pretrained(model: MaskedLanguageModel, config: PretrainingConfig) -> None:
    """Compiles a model with the optimizer of Devlin et al. 2019, appendix A.2."""
    rate = WarmupLinearDecay(config.learning_rate, config.steps, config.warmup)
    optimizer = AdamW(rate, config.weight_decay, epsilon=1e-6, global_clipnorm=config.clip)
    model.compile(optimizer, steps_per_execution=config.steps_per_execution)


def run_tokenizer(
    config: PretrainingConfig, corpus: Any, kept: Path | None = None
) -> Tokenizer | None:
    """Returns the tokenizer of a new model, or None where an encoder brings its own.

    Its vocabulary is that of the stopped run in the folder `kept` (a ValueError if the options of
    tokens have changed), from a file, or learned from the corpus; nothing is learned from records.
    """
    file = VOCABULARIES[ENCODERS[config.architecture].byte_level]
    if kept is not None and (kept / file).is_file():
        check_unchanged(kept, config, _OF_VOCABULARY, f"the tokens in {kept / file}")
        if config.encoder is None:
            return _read(kept / file, config)
    if config.encoder is not None:
        return None
    if config.vocabulary_size is None:
        return _read(Path(config.vocabulary or ""), config)
    if ENCODERS[config.architecture].byte_level:
        texts = chain.from_iterable(_documents(corpus, config.seed))
        vocabulary, merges = train_byte_level_bpe(texts, config.vocabulary_size)
        if not merges:
            raise _nothing_learned(corpus)
        return ByteLevelBPE(vocabulary, merges, special_tokens_in_text=True)
    counts = count_words(_documents(corpus, config.seed), config.lowercase)
    if not counts:
        raise _nothing_learned(corpus)
    vocabulary = train_wordpiece(counts, config.vocabulary_size)
    return WordPiece(vocabulary, config.lowercase, special_tokens_in_text=True)


def _nothing_learned(corpus: Any) -> ValueError:
    return ValueError(f"`text` must hold words to learn a vocabulary from. Received: {corpus}")


def _read(file: Path, config: PretrainingConfig) -> Tokenizer:
    """Reads the tokenizer of a new model, which must be of its architecture's kind."""
    tokenizer = tokenizer_of_file(file, config.lowercase, special_tokens_in_text=True)
    if tokenizer.vocabulary.special_tokens.byte_level != ENCODERS[config.architecture].byte_level:
        wanted = VOCABULARIES[ENCODERS[config.architecture].byte_level]
        raise ValueError(
            f"`vocabulary` must be a {wanted} with architecture={config.architecture!r}. "
            f"Received: vocabulary={config.vocabulary!r}"
        )
    return tokenizer


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
