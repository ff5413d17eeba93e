"""The data and the table of the benchmark of transfer."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

Load = Callable[[str], ModuleType]
PAIR = {"text_a": "It rains.", "text_b": 'It is "wet".', "label": "entailment"}


@pytest.fixture
def glue(tmp_path: Path) -> Path:
    """A file of each task, in its own format."""
    files = {
        "RTE/train.tsv": 'sentence1\tsentence2\tlabel\tidx\nIt rains.\tIt is "wet".\t0\t7\n',
        "SICK/SICK_train.txt": "pair_ID\tsentence_A\tsentence_B\trelatedness_score\t"
        'entailment_judgment\n1\tIt rains.\tIt is "wet".\t4.5\tENTAILMENT\n',
        "CoLA/train.tsv": "gj04\t0\t*\tThey is.\n",
    }
    packed = {
        "MNLI-subset/train.json.gz": json.dumps({"0": PAIR}),
        "SNLI-subset/train.tsv.gz": 'sentence1\tsentence2\tlabel\nIt rains.\tIt is "wet".\t'
        "entailment\n",
    }
    for name, text in {**files, **packed}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        content = gzip.compress(text.encode()) if name in packed else text.encode()
        (tmp_path / name).write_bytes(content)
    return tmp_path


def test_every_format_gives_the_same_examples(program: Load, glue: Path, tmp_path: Path):
    data = program("side_by_side.transfer_data")
    for task in ("rte", "sick", "mnli"):
        assert list(data.examples(task, "train", glue)) == [PAIR], task
    assert list(data.examples("snli-mnli", "train", glue)) == [PAIR, PAIR]
    cola = [{"text": "They is.", "label": "unacceptable"}]
    assert list(data.examples("cola", "train", glue)) == cola
    file = data.written("cola", "train", glue, tmp_path / "data")
    assert [json.loads(line) for line in file.read_text().splitlines()] == cola


def test_the_table_has_means_and_deviations(program: Load):
    summary = program("transfer_summary")
    rows = [
        {"row": "LoRA", "task": "rte", "seed": seed, "score": score, "trained_weights": 250_000}
        for seed, score in enumerate((0.5, 0.6, 0.7, 0.6, 0.6), start=1)
    ]
    rows.append({"row": "LoRA", "task": "sick", "seed": 1, "score": 0.8, "trained_weights": 250})
    (found,) = summary.summary(rows)
    assert found == {
        "": "LoRA",
        "rte": "0.600 ± 0.071",
        "sick": "0.800 (1 seed)",
        "cola": "",
        "trained weights": "250,000",
        "MB of a task": "1.0",
    }


def test_what_was_forgotten_is_in_a_table(program: Load):
    summary = program("transfer_summary")
    rows = [
        {"way": "one by one", "seed": 1, "first_before": 0.9, "first_after": 0.5, "second": 0.3},
        {"way": "at once", "seed": 1, "first_after": 0.8, "second": 0.2},
        {"way": "one by one", "seed": 2, "first_before": 0.8, "first_after": 0.7, "second": 0.3},
        {"way": "one by one", "seed": 3, "first_before": 0.7, "first_after": 0.6, "second": 0.3},
    ]
    alone, together = summary.forgetting(rows)
    assert alone == {
        "": "one by one",
        "SICK before": "0.800 ± 0.100",
        "SICK after": "0.600 ± 0.100",
        "CoLA": "0.300 ± 0.000",
    }
    assert together == {
        "": "at once", "SICK before": "", "SICK after": "0.800 (1 seed)", "CoLA": "0.200 (1 seed)"
    }
