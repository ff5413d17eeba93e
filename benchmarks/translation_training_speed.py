"""Training a translator: kbert beside PyTorch, the same batches of Multi30k, tokens a second.

    python benchmarks/translation_training_speed.py MULTI30K_DIRECTORY [--size base]
    python benchmarks/translation_training_speed.py MULTI30K_DIRECTORY --architecture bahdanau

Each turn trains on all batches once, forward, backward and Adam, with dropout and label smoothing.
Counted are real tokens of sources and targets. PyTorch runs `torch.nn.Transformer`, or the models
of `peers/torch_recurrent_models.py` and `peers/torch_convs2s.py`, with a table of embeddings that
both languages and the output share. The other architectures have the sizes of `ladder.py`.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from side_by_side.contender import Contender, play, ratio
from side_by_side.ladder_rungs import SIZES
from side_by_side.multi30k_data import read_split, train_pieces
from side_by_side.results import parser, write

from kbert.data.batches.packed_examples import token_rows
from kbert.data.translation.parallel_pipeline import PackedPairs, parallel_dataset
from kbert.models.sizes import transformer_size

WORKS = ("train",)
DROPOUT = {"tiny": 0.3, "small": 0.3, "base": 0.1, "big": 0.3}


def prepare(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Writes the batches; returns what contenders must know."""
    train = read_split(arguments.directory, "train")
    pieces = train_pieces(train, folder / "pieces.model")
    sides = (train.sources[:: arguments.every], train.targets[:: arguments.every])
    pairs = PackedPairs(*(token_rows(pieces, side, 256) for side in sides))
    batches = list(parallel_dataset(pairs, arguments.tokens, shuffle=True).as_numpy_iterator())
    arrays = {}
    for number, (inputs, targets) in enumerate(batches[: arguments.batches]):
        named = {**inputs, "targets": targets}
        arrays |= {f"{number}/{name}": array for name, array in named.items()}
    np.savez(folder / "batches.npz", **arrays)
    counted = sum(
        int(array.sum()) if name.endswith("source_padding_mask") else int((array >= 0).sum())
        for name, array in arrays.items()
        if name.endswith(("source_padding_mask", "targets"))
    )
    size = transformer_size(arguments.size) | {"dropout": DROPOUT[arguments.size]}
    if arguments.architecture != "transformer":
        # The recurrent cell that PyTorch has.
        size = SIZES[arguments.architecture] | {"dropout": 0.3}
        size |= {} if arguments.architecture == "convs2s" else {"cell": "gru_reset_after"}
    size["vocabulary_size"] = len(pieces)
    named = {"architecture": arguments.architecture, "size": size}
    return {"data": str(folder / "batches.npz"), "counted": counted, **named}


def rows_of(played: list[Contender], tokens: int) -> dict[str, list[dict[str, Any]]]:
    """A row for each contender, beside the fastest PyTorch of the same precision."""
    run = {c.name: c for c in played if c.median("train")}
    rows = []
    for name, contender in run.items():
        row = {"contender": name, "loss": contender.facts["loss"]}
        row["real_tokens_per_second"] = round(1e3 * tokens / (contender.median("train") or 1e30))
        other = run.get(name.replace("kbert", "torch"))
        if name.startswith("kbert") and other:
            row["times_as_fast_as_torch"] = ratio(other, contender, "train")
        rows.append(row)
    return {"rows": rows}


def main() -> None:
    """Runs all contenders."""
    arguments_parser = parser("translation_training_speed", __doc__)
    arguments_parser.add_argument("directory", type=Path, help="folder with train.en.gz and so on")
    kinds = ("transformer", *SIZES)
    arguments_parser.add_argument("--architecture", default="transformer", choices=kinds)
    arguments_parser.add_argument("--size", default="tiny", choices=list(DROPOUT))
    arguments_parser.add_argument("--tokens", type=int, default=4096, help="cells of a side")
    arguments_parser.add_argument("--batches", type=int, default=20)
    arguments_parser.add_argument("--every", type=int, default=1, help="every so many-th pair")
    arguments = arguments_parser.parse_args()
    output = arguments.output
    if output == arguments_parser.get_default("output") and arguments.architecture != kinds[0]:
        output = output.with_stem(f"{output.stem}_{arguments.architecture}")
    with tempfile.TemporaryDirectory() as name:
        settings = prepare(Path(name), arguments)
        played = []
        for precision in ("float32", "bfloat16"):
            options = {**settings, "precision": precision}
            module = "contenders.kbert_translation_step"
            played.append(Contender(f"kbert {precision}", module, WORKS, **options))
            module, python = "peers.torch_translation_step", arguments.peer_python
            played.append(Contender(f"torch {precision}", module, WORKS, python, **options))
        play(played, [{"work": "train", "repeats": 1}], arguments.rounds)
    keys = ("architecture", "size", "tokens", "batches", "rounds")
    facts = {key: getattr(arguments, key) for key in keys} | {"sizes": str(settings["size"])}
    write(output, rows_of(played, settings["counted"]), played, facts)


if __name__ == "__main__":
    main()
