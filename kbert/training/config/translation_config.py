"""`TranslationConfig`: all options of a translation run, their defaults and contradictions."""

from dataclasses import dataclass

from kbert.architectures import BERT_FUSED, ENCODER_DECODERS, TRANSFORMER, check_known
from kbert.models.sizes import TRANSFORMER_SIZES
from kbert.options.configuration import (
    TRAINING,
    EpochOptions,
    OptimizerOptions,
    PlacementOptions,
    RunOptions,
    check_default,
    wrong,
)
from kbert.options.kinds import choice, column, flag, number, option, rate, text, whole
from kbert.tasks.finetuned_task import TFDS
from kbert.training.config.architecture_options import (
    ARCHITECTURE_OPTIONS,
    ArchitectureOptions,
)

TASK = "translation"
# Metrics by which epochs may be compared, the default first.
MONITORED = ("loss", "perplexity", "accuracy", "bleu", "chrf")
# These need a beam search, which takes longer than all of the others together.
SEARCHED = ("bleu", "chrf")
PARTS = ("train", "validation", "test")
# Options of learning subwords, without effect where subword models are given.
_LEARNED = (
    *("subwords", "subword_type", "vocabulary_size", "normalization"),
    *("character_coverage", "byte_fallback", "subword_lines"),
)
# Fixed by the translator of a warm start.
_SIZES = (
    *("architecture", "size", "num_encoder_layers", "num_decoder_layers", "hidden_dim"),
    *("num_heads", "intermediate_dim", "max_sequence_length", "norm", "positions", "tied"),
    *ARCHITECTURE_OPTIONS,
)
_OF_BERT = ("drop_net", "train_bert", "features")
_DATA, _SUBWORDS, _MODEL, _BERT = "Data", "Subwords", "Model", "BERT"
_SEARCH = "Search"
_PAIRS = text("a table or tfds:NAME")
_LINES = text("a text file")
_LEAST_ONE = whole(1, optional=True)
_ABOVE_0 = number("a number above 0", lambda v: v > 0, optional=True)
_NOT_BELOW_0 = number("a number, at least 0", lambda v: v >= 0)


@dataclass(frozen=True)
class TranslationConfig(
    ArchitectureOptions, EpochOptions, OptimizerOptions, PlacementOptions, RunOptions
):
    """The configuration of a run that trains a translator; see `docs/translation.md`."""

    needed = ("train|train_source", "output")

    task: str = option(TASK, choice(TASK), _DATA, "What is learned.")
    train: str | None = option(
        None, _PAIRS, _DATA,
        "Training pairs: TSV, CSV or JSON Lines with the columns source and target (also .gz), or "
        "tfds:wmt16_translate/de-en@train.",
    )
    train_source: str | None = option(
        None, _LINES, _DATA, "Instead of train: the sentences, one a line (also .gz)."
    )
    train_target: str | None = option(
        None, _LINES, _DATA, "Translations of train_source, line by line (also .gz)."
    )
    validation: str | None = option(
        None, _PAIRS, _DATA, "Pairs to be measured after each epoch, as `train`."
    )
    validation_source: str | None = option(
        None, _LINES, _DATA, "Instead of validation: its sentences, one a line."
    )
    validation_target: str | None = option(
        None, _LINES, _DATA, "Translations of validation_source, line by line."
    )
    test: str | None = option(
        None, _PAIRS, _DATA, "Pairs to be measured once, at the end, as `train`."
    )
    test_source: str | None = option(
        None, _LINES, _DATA, "Instead of test: its sentences, one a line."
    )
    test_target: str | None = option(
        None, _LINES, _DATA, "Translations of test_source, line by line."
    )
    source_column: str | int = option(
        "source",
        column(),
        _DATA,
        "Column of the sentences in a table, by name, or by index in a file without a header.",
    )
    target_column: str | int = option("target", column(), _DATA, "Column of the translations.")
    data: str | None = option(None, text("a folder"), _DATA, "Folder of prepared TFDS.")
    source_language: str | None = option(
        None, text("a language"), _DATA, "The language to translate from, as TFDS calls it."
    )
    target_language: str | None = option(
        None, text("a language"), _DATA,
        "The language to translate into, such as de; the tokenised lower-cased BLEU of the "
        "literature is then measured too.",
    )
    max_length: int | None = option(
        None, _LEAST_ONE, _DATA,
        "Training pairs with more pieces on a side are left out; by default those that do not fit "
        "max_sequence_length.",
    )
    max_ratio: float | None = option(
        None, number("a number, at least 1", lambda v: v >= 1, optional=True), _DATA,
        "Training pairs are left out where one side has more than so many times the other's "
        "pieces.",
    )
    subwords: str = option(
        "joint", choice("joint", "separate"), _SUBWORDS, "One model of both languages, or two."
    )
    subword_type: str = option("bpe", choice("bpe", "unigram"), _SUBWORDS, "bpe or unigram.")
    vocabulary_size: int = option(8000, whole(5), _SUBWORDS, "Pieces of each model.")
    normalization: str = option(
        "nfkc", choice("nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf", "identity"), _SUBWORDS,
        "What SentencePiece does to text first: nfkc, nmt_nfkc, these with _cf (lower case), or "
        "identity.",
    )
    character_coverage: float = option(
        1.0, number("a number from 0.98 to 1", lambda v: 0.98 <= v <= 1), _SUBWORDS,
        "Share of the text's characters that have a piece.",
    )
    byte_fallback: bool = option(
        False, flag(), _SUBWORDS, "Whether characters without a piece become bytes, not unknown."
    )
    subword_lines: int | None = option(
        None, _LEAST_ONE, _SUBWORDS, "Learn the pieces from so many lines, drawn at random."
    )
    source_subwords: str | None = option(
        None, text("a .model file"), _SUBWORDS, "A ready SentencePiece model instead."
    )
    target_subwords: str | None = option(
        None, text("a .model file"), _SUBWORDS, "That of the target; by default the source's."
    )
    architecture: str = option(
        TRANSFORMER, text("an architecture"), _MODEL,
        "transformer, rnn, bahdanau, convs2s, bert-fused, or another that was added.",
    )
    size: str = option(
        "tiny", choice(*TRANSFORMER_SIZES), _MODEL, f"{', '.join(TRANSFORMER_SIZES)}."
    )
    num_encoder_layers: int | None = option(None, _LEAST_ONE, _MODEL, "Instead of the size's.")
    num_decoder_layers: int | None = option(None, _LEAST_ONE, _MODEL, "Instead of the size's.")
    hidden_dim: int | None = option(None, _LEAST_ONE, _MODEL, "Instead of the size's.")
    num_heads: int | None = option(None, _LEAST_ONE, _MODEL, "Instead of the size's.")
    intermediate_dim: int | None = option(None, _LEAST_ONE, _MODEL, "Instead of the size's.")
    max_sequence_length: int = option(
        512, whole(4), _MODEL, "Most pieces of a sentence or translation, the end included."
    )
    norm: str = option("post", choice("post", "pre"), _MODEL, "LayerNorm: post or pre.")
    positions: str = option(
        "sinusoidal", choice("sinusoidal", "learned"), _MODEL, "sinusoidal or learned."
    )
    tied: str = option(
        "auto", choice("auto", "all", "target", "none"), _MODEL,
        "What shares an embedding: all, target (with the output) or none; auto is all with one "
        "subword model, target with two.",
    )
    dropout: float = option(0.1, rate(), _MODEL, "Dropout rate of sublayers and embeddings.")
    attention_dropout: float = option(0.0, rate(), _MODEL, "Dropout rate of attention.")
    warm_start: str | None = option(
        None, text("a run or a model's folder"), _MODEL,
        "Begin with the weights, sizes and subwords of this translator.",
    )
    bert: str | None = option(
        None, text("an encoder"), _BERT, "Fuse this BERT: a published name or a folder."
    )
    drop_net: float = option(
        1.0, number("a number in [0, 1]", lambda v: 0 <= v <= 1), _BERT, "Rate of the drop-nets."
    )
    train_bert: bool = option(False, flag(), _BERT, "Whether BERT learns too.")
    features: str | None = option(
        None, text("a folder"), _BERT, "Compute BERT's states once, and keep them in this folder."
    )
    epochs: int = option(30, whole(1), TRAINING, "Passes over the training pairs.")
    batch_tokens: int = option(
        4096, whole(1), TRAINING, "Cells of a batch: pairs times the longest side, in pieces."
    )
    accumulation_steps: int = option(1, whole(1), TRAINING, "Batches an update.")
    learning_rate: float | None = option(
        None, _ABOVE_0, TRAINING, "Peak of the rate; by default (hidden_dim warmup_steps)^-0.5."
    )
    warmup_steps: int = option(
        4000, whole(1), TRAINING, "Updates in which the rate rises; then it falls as n^-0.5."
    )
    cooldown_epochs: int = option(
        0, whole(0), TRAINING, "The last epochs, in which the rate falls to 0."
    )
    label_smoothing: float = option(0.1, rate(), TRAINING, "Share of the target given to all.")
    weight_decay: float = option(0.0, _NOT_BELOW_0, TRAINING, "Decoupled weight decay.")
    clip: float | None = option(
        None, _ABOVE_0, TRAINING, "The gradients together are scaled down to this norm."
    )
    monitor: str = option(
        "loss", choice(*MONITORED), TRAINING, f"What epochs compare by: {', '.join(MONITORED)}."
    )
    average: int | None = option(
        None, _LEAST_ONE, TRAINING, "Instead: keep the mean of the weights of so many last epochs."
    )
    beam_size: int = option(5, whole(1), _SEARCH, "Hypotheses of the search; 1 is greedy.")
    length_penalty: str = option(
        "power", choice("power", "gnmt"), _SEARCH, "power: n^a; gnmt: ((5 + n) / 6)^a."
    )
    alpha: float = option(1.0, _NOT_BELOW_0, _SEARCH, "The exponent a of the length penalty.")
    nbest: int = option(1, whole(1), _SEARCH, "Translations of a sentence, the best first.")
    length_ratio: float = option(
        2.0, _NOT_BELOW_0, _SEARCH,
        "A translation has at most length_ratio times the source's pieces, and length_extra more.",
    )
    length_extra: int = option(
        10, whole(1), _SEARCH,
        "Pieces that a translation may have beyond length_ratio times the source's.",
    )
    validation_beam: int = option(
        1, whole(1), _SEARCH, "beam_size of measuring epochs, where monitor is bleu or chrf."
    )

    def check_together(self) -> None:
        """Checks the values against each other."""
        _check_data(self)
        _check_subwords(self)
        _check_model(self)
        super().check_together()


def _check_data(config: TranslationConfig) -> None:
    tfds = False
    for part in PARTS:
        given = getattr(config, part)
        source, target = (getattr(config, f"{part}_{side}") for side in ("source", "target"))
        tfds = tfds or str(given).startswith(TFDS)
        if given is not None and (source is not None or target is not None):
            raise wrong(part, f"left out with {part}_source and {part}_target", given)
        for side, value, other in (("source", source, target), ("target", target, source)):
            if value is None and other is not None:
                raise wrong(f"{part}_{side}", "given with the other side of the pairs", None)
            if str(value).startswith(TFDS):
                raise wrong(f"{part}_{side}", f"a text file; give {part} for tfds:NAME", value)
    if config.train is None and config.train_source is None:
        raise wrong("train", "given, or train_source and train_target", None)
    if config.validation is None and config.validation_source is None:
        check_default(config, ("early_stopping", "monitor"), "where there is no validation")
    if not tfds:
        check_default(config, ("source_language", "data"), "without tfds:NAME")


def _check_subwords(config: TranslationConfig) -> None:
    if config.target_subwords is not None and config.source_subwords is None:
        raise wrong("source_subwords", "given with target_subwords", None)
    if config.source_subwords is not None:
        check_default(config, _LEARNED, "with source_subwords, a ready model")
    if config.tied == "all" and config.subwords == "separate":
        raise wrong("tied", "target or none with subwords='separate'", config.tied)


def _check_model(config: TranslationConfig) -> None:
    check_known(config.architecture, ENCODER_DECODERS)
    if config.bert is not None and config.architecture not in (TRANSFORMER, BERT_FUSED):
        raise wrong("architecture", f"{TRANSFORMER} or {BERT_FUSED} with bert", config.architecture)
    if config.bert is None and config.architecture == BERT_FUSED:
        raise wrong("bert", f"given with architecture={BERT_FUSED}", None)
    if config.warm_start is not None:
        ready = ("source_subwords", "target_subwords")
        check_default(config, (*_SIZES, *_LEARNED, *ready), "with warm_start, which has its own")
    if config.bert is None:
        check_default(config, _OF_BERT, "without bert")
    if config.features is not None and config.train_bert:
        raise wrong("features", "left out with train_bert: its states change", config.features)
    if config.cooldown_epochs > config.epochs:
        raise wrong("cooldown_epochs", f"at most epochs={config.epochs}", config.cooldown_epochs)
    if config.nbest > config.beam_size:
        raise wrong("nbest", f"at most beam_size={config.beam_size}", config.nbest)
