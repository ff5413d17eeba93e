"""sentence-transformers from raw strings to vectors; it sorts texts by length itself."""

import json
from pathlib import Path

import numpy as np
from side_by_side.turns import Turns, cores

turns = Turns()

import torch
from sentence_transformers import SentenceTransformer


def main() -> None:
    """Answers with milliseconds of embedding all texts; the first vectors go to a file."""
    torch.set_num_threads(cores())
    settings = turns.settings
    texts = json.loads(Path(settings["data"]).read_text())
    kwargs = {"torch_dtype": getattr(torch, settings["dtype"])}
    model = SentenceTransformer(settings["model"], device="cpu", model_kwargs=kwargs)

    def embed() -> np.ndarray:
        given = {"batch_size": settings["batch"], "show_progress_bar": False}
        return model.encode(texts, **given, convert_to_numpy=True)

    np.save(settings["vectors"], embed())
    turns.ready("torch", "transformers", "sentence-transformers")
    turns.serve({"embed": embed})


if __name__ == "__main__":
    main()
