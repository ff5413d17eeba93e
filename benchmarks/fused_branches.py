"""What the branches of a fused translator are worth: BLEU on Multi30k's validation pairs.

    python benchmarks/fused_branches.py MULTI30K_DIRECTORY runs/mt/fused-1/model --weights 0.7,0.3

Each weight is forced on all layers: of the attention to the own states, and of that to BERT's.
"""

import argparse
import json
from pathlib import Path

from side_by_side.multi30k_data import read_split
from side_by_side.translation_scores import recaser, scores

from kbert.pipelines.translation import Translator

WEIGHTS = ("0.5,0.5", "1,0", "0,1", "0.7,0.3")


def main() -> None:
    """Translates with each pair of weights, and scores."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with val.en.gz and so on")
    parser.add_argument("model", type=Path, help="a fused translator")
    parser.add_argument("--weights", nargs="+", default=WEIGHTS, help="own,BERT")
    arguments = parser.parse_args()
    split = read_split(arguments.data, "val")
    recase = recaser(split.references, "de")
    for given in arguments.weights:
        own, bert = map(float, given.split(","))
        # A graph that was traced keeps its weights: each pair has a model of its own.
        model = Translator.from_pretrained(arguments.model, dtype="float32")
        model.transformer.force_branches((own, bert))
        found = scores(model.predict(split.sources), split, "de", recase)
        shown = {"tokenized_lowercase_bleu", "brevity_penalty"}
        print(json.dumps({"weights": [own, bert]} | {k: found[k] for k in shown}), flush=True)


if __name__ == "__main__":
    main()
