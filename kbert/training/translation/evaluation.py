"""Facts of a translation run before its first step, and metrics of its translator."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kbert.data.translation import parallel_batches
from kbert.data.translation.parallel_pipeline import PackedPairs
from kbert.data.translation.parallel_text import ParallelText
from kbert.metrics.bleu import tokenized_lowercase_bleu, translation_metrics
from kbert.tasks.translation.model import Translator
from kbert.training.config.translation_config import TranslationConfig
from kbert.training.translation.examples import TranslationData
from kbert.training.translation.inputs import PreparedPairs, left_out, prepare_pairs, train_buckets
from kbert.training.translation.model import Built

_FORCED = ("loss", "perplexity", "accuracy")
_LENGTHS = ("length_penalty", "alpha", "length_ratio", "length_extra")
# Number of names of new weights in a line.
_SHOWN = 3


def teacher_forced(model: Translator, prepared: PreparedPairs) -> dict[str, float]:
    """Measures the prediction of the next piece of reference translations (teacher forcing).

    Returns "loss" (with smoothed labels), "perplexity" (per piece) and "accuracy" (of pieces),
    means over all pieces of the translations, end tokens included.
    """
    if not model.compiled:
        model.compile()
    found = model.evaluate(prepared.dataset(model), verbose=0, return_dict=True)
    return {name: float(found[name]) for name in _FORCED}


def translation_scores(
    translations: list[str], references: list[str], language: str | None = None
) -> dict[str, Any]:
    """Scores translations, with the signatures that make scores comparable."""
    scores = translation_metrics(translations, references)
    if language is not None:
        scores |= tokenized_lowercase_bleu(translations, references, language)
    return scores


def check_language(language: str, argument: str = "language") -> None:
    """Checks that there are tokenisation rules for a language.

    Raises:
        ValueError: There are none; the message names the language as `argument`.
    """
    try:
        tokenized_lowercase_bleu(["a"], ["a"], language)
    except ValueError as error:
        raise ValueError(str(error).replace("language", argument)) from error


@dataclass(frozen=True)
class MeasuredPairs:
    """Validation pairs of the epochs.

    The searcher translates them with the weights of the model in training; None for teacher-forced
    metrics only.
    """

    prepared: PreparedPairs
    searcher: Translator | None = None

    def measured(self, model: Translator) -> dict[str, Any]:
        """Returns the metrics of an epoch."""
        found: dict[str, Any] = teacher_forced(model, self.prepared)
        if self.searcher is not None:
            text = self.prepared.text
            translations = self.searcher.translations(text.sources)
            found |= translation_scores(translations, text.targets or [])
        return found


def searcher_of(model: Translator, beam_size: int) -> Translator:
    """Returns a translator with another beam search on the same variables, while they train too."""
    return Translator(
        model.transformer,
        model.source_subwords,
        model.target_subwords,
        model.bert_tokenizer,
        beam_size=beam_size,
        dtype=model.dtype_policy,
        name="searcher",
        **{name: getattr(model, name) for name in _LENGTHS},
    )


def measure_translator(
    model: Translator, text: ParallelText, language: str | None = None, features: str | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Evaluates a translator on pairs; those with an empty side are translated but not scored.

    A language, which needs tokenisation rules, adds the tokenised lower-cased BLEU; `features` is
    the folder of BERT's states, or None to compute them in each batch.

    Returns the metrics as JSON types: scores, those of `teacher_forced`, "sentences", "truncated"
    (sources that are longer than the model reads), "left_out"; and the translations of all sources
    in their order.
    """
    prepared = prepare_pairs(model, text, features=features)
    if language is not None:
        check_language(language)  # before the search
    found = model.translation_columns(text.sources)
    translations = [one.decode() for one in found["translation"]]
    kept = prepared.report.kept
    scores = translation_scores(
        [translations[i] for i in kept], prepared.text.targets or [], language
    )
    return {
        **scores,
        **teacher_forced(model, prepared),
        "sentences": len(kept),
        "truncated": int(found["truncated"][kept].sum()),
        "left_out": left_out(prepared.report),
    }, translations


def translation_report(
    config: TranslationConfig, data: TranslationData, built: Built, parts: dict[str, PreparedPairs]
) -> dict[str, Any]:
    """Returns the report of a run before its first step, as JSON types."""
    model, train, warm = built.model, parts["train"].packed, built.warm_start
    count, padding = _batches(config, train, model.max_source_length)
    updates = count // config.accumulation_steps
    if not updates:
        raise ValueError(
            f"`accumulation_steps` must be at most the number of batches, {count}. Received: "
            f"accumulation_steps={config.accumulation_steps}"
        )
    examples = {part: _about(data.parts[part], prepared) for part, prepared in parts.items()}
    weights = [np.prod(variable.shape) for variable in model.trainable_variables]
    return {
        "task": config.task,
        **data.hashes,
        "examples": examples,
        "subwords": {"source": len(model.source_subwords), "target": len(model.target_subwords)},
        "padding_share": padding,
        "batches_per_epoch": updates * config.accumulation_steps,
        "steps_per_epoch": updates,
        "steps": updates * config.epochs,
        "warmup_steps": config.warmup_steps,
        "parameters": int(sum(weights)),
        "warm_start": None if warm is None else vars(warm) | {"loaded": len(warm.loaded)},
    }


def _batches(config: TranslationConfig, train: PackedPairs, positions: int) -> tuple[int, float]:
    """Returns the number of batches of an epoch, and their share of padding."""
    lengths = (train.sources.lengths, train.targets.lengths)
    random: dict[str, Any] = {"shuffle": True, "seed": config.seed}
    buckets = train_buckets(config, positions)
    if buckets is not None:
        fixed = parallel_batches.fixed_batch_plan(*lengths, buckets, **random)
        return len(fixed), parallel_batches.fixed_padding_share(*lengths, fixed)
    plan = parallel_batches.parallel_batch_plan(*lengths, config.batch_tokens, **random)
    return len(plan), parallel_batches.parallel_padding_share(*lengths, plan)


def _about(text: Any, prepared: PreparedPairs) -> dict[str, Any]:
    sides = (prepared.packed.sources, prepared.packed.targets)
    return {
        "count": len(prepared),
        "read": len(text),
        "left_out": left_out(prepared.report),
        "source": text.source,
        "tokens": prepared.tokens,
        "longest": int(max(side.lengths.max() for side in sides)),
        "truncated_share": float(np.mean(sides[0].truncated | sides[1].truncated)),
    }


def only_warm_up(report: dict[str, Any]) -> str:
    """Returns a warning that a run ends before its rate has reached half of its peak."""
    steps = report["steps"]
    return (
        f"the run has {steps} steps, and its rate rises until step {report['warmup_steps']}: it "
        "will learn little. More epochs would help, or "
        f"`--warmup-steps {max(1, steps // 10)}` with a `--learning-rate`, the peak"
    )


def translation_lines(report: dict[str, Any], parts: dict[str, PreparedPairs]) -> str:
    """Returns a report as readable text."""
    lines = []
    for part, about in report["examples"].items():
        lines.append(
            f"{part}: {about['count']} pairs, {about['tokens']} tokens, the longest side has "
            f"{about['longest']}; {about['truncated_share']:.1%} were cut"
        )
        lines += [f"  {line}" for line in str(parts[part].report).split("\n")]
        if parts[part].cached is not None:
            lines.append(f"  {parts[part].cached}")
    pieces = report["subwords"]
    lines.append(f"subwords: {pieces['source']} of the source, {pieces['target']} of the target")
    warm = report["warm_start"]
    if warm is not None:
        shown = ", ".join(warm["new"][:_SHOWN])
        more = ", ..." if len(warm["new"]) > _SHOWN else ""
        lines.append(
            f"warm start: {warm['loaded']} weights taken over, {len(warm['new'])} new"
            f"{f' ({shown}{more})' if shown else ''}, {len(warm['missing'])} without a place, "
            f"{len(warm['mismatched'])} of another shape"
        )
    lines.append(
        f"steps: {report['steps']}, {report['steps_per_epoch']} an epoch "
        f"({report['warmup_steps']} of warm-up); "
        f"padding: {report['padding_share']:.1%} of the batches"
    )
    lines.append(f"parameters: {report['parameters']:,}")
    return "\n".join(lines)
