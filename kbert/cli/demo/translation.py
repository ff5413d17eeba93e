"""The translation step of `kbert demo`: a toy, trained on kbert's own sentence pairs."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kbert.cli.show.tables import show_alignment
from kbert.data.samples import sample_path
from kbert.data.translation.parallel_text import read_parallel_tsv
from kbert.tasks.translation.text_alignment import alignment_of_text
from kbert.training.config.translation_config import TranslationConfig
from kbert.training.run import train
from kbert.training.runs.load_model import load_model
from kbert.training.runs.run_directory import load_run

# One layer on each side and a piece for nearly every word: the toy learns in half a minute what
# larger models also learn.
SETTINGS: dict[str, Any] = {
    "vocabulary_size": 700,
    "num_encoder_layers": 1,
    "num_decoder_layers": 1,
    "batch_tokens": 512,
    "epochs": 30,
    "average": 5,
    "learning_rate": 3e-3,
    "warmup_steps": 200,
}
# Sentences of test.tsv to show: German has another word order in each.
SHOWN = (
    "My parents do not draw a picture in the living room in the evening.",
    "Yesterday my mother visited the museum in the city.",
    "Is Anna feeding the dog in the kitchen?",
)


def demo_translation(output: Path, console: Console) -> dict[str, Any]:
    """Trains a toy translator, evaluates it, and shows translations of unseen sentences.

    Args:
        output: The folder to work in.
        console: The console to print to.

    Returns:
        The metrics of the test pairs, the folder of the run, and the translations.
    """
    console.print(
        "A toy: it learns 600 sentences about a small world. It translates new ones made "
        "of the same words, and knows nothing of any other."
    )
    run = load_run(train(translation_config(output)))
    metrics = run.metrics["final"]["test"]
    pairs = read_parallel_tsv(sample_path("translation/test.tsv"))
    right = dict(zip(pairs.sources, pairs.targets or []))
    model = load_model(run.directory)
    translations = model.translations(SHOWN)
    table = Table(show_header=False)
    for text, translation in zip(SHOWN, translations):
        table.add_row("new to it", text)
        table.add_row("translation", Text(translation, style="bold"))
        table.add_row("reference", right[text], end_section=True)
    console.print(table)
    console.print(
        "What each word of the first translation comes from: the attention to the source while "
        "the word was said, dark where there is much."
    )
    words = alignment_of_text(model, SHOWN[0]).in_words()
    show_alignment(words.source, words.target, words.mean(words.layer), console)
    console.print(
        f"BLEU {metrics['bleu']:.1f}, chrF {metrics['chrf']:.1f} on {metrics['sentences']} such "
        "sentences: numbers of a toy."
    )
    console.print(f"Files: {run.directory}/ (model/, subwords/, metrics.json, log.txt)")
    return {"test": metrics, "run": run.directory, "translations": translations}


def translation_config(output: Path) -> TranslationConfig:
    """Returns the configuration of the toy's run.

    Args:
        output: The folder to work in.
    """
    files = {part: f"translation/{part}.tsv" for part in ("train", "validation", "test")}
    parts = {part: str(sample_path(file)) for part, file in files.items()}
    place = {"output": str(output / "translator"), "overwrite": True}
    return TranslationConfig.from_dict({**parts, **place, **SETTINGS})
