"""sentence-transformers computes the same vectors, losses and gradients, and reads what is written.

They need sentence-transformers, in this Python or in that of KBERT_PEER_PYTHON.
"""

import importlib.util
import json
import os

import numpy as np
import pytest
import tensorflow as tf

from kbert.data.classification.text_tuples import read_tuple_examples
from kbert.metrics.embeddings import embedding_metrics
from kbert.optimization.embedding_losses import CosineRegression, MultipleNegatives, TripletMargin
from kbert.tasks.embedding.model import TextEmbedder
from kbert.tasks.load import load
from tests.small_pipelines import TEXTS, random_texts
from tests.transformers_process import run_with_transformers

# Not what JSON cannot hold; nor [CLS] and the like, which are text here and special tokens there.
STRINGS = [text for text in TEXTS if isinstance(text, str) and "[" not in text]
LENGTHS = [" ".join(["a good film is hard to find"] * n) for n in (1, 3, 9, 20, 36, 60)]
VECTORS = """
import json, sys
import numpy as np
from sentence_transformers import SentenceTransformer
texts = json.load(open(sys.argv[1]))
for number, folder in enumerate(sys.argv[2:]):
    model = SentenceTransformer(folder, device="cpu")
    np.save(f"{sys.argv[1]}.{number}.npy", model.encode(texts))
    model.save(f"{sys.argv[1]}.{number}")
"""
LOSSES = """
import json, sys
import torch
from sentence_transformers import SentenceTransformer, losses
columns, scores = json.load(open(sys.argv[1]))
model = SentenceTransformer(sys.argv[2], device="cpu").eval()
features = [(getattr(model, "preprocess", None) or model.tokenize)(texts) for texts in columns]
made = {
    "pairs": (losses.MultipleNegativesRankingLoss(model), features[:2]),
    "hard": (losses.MultipleNegativesRankingLoss(model), features),
    "cosine": (losses.CosineSimilarityLoss(model), features[:2]),
    "triplet": (losses.TripletLoss(model, triplet_margin=1.0), features),
}
found = {}
for name, (loss, given) in made.items():
    model.zero_grad()
    value = loss([dict(one) for one in given], torch.tensor(scores))
    value.backward()
    (weight,) = [p for n, p in model.named_parameters() if n.endswith("layer.2.output.dense.bias")]
    found[name] = [value.item(), weight.grad.tolist()]
print(json.dumps(found))
"""
MADE = {
    "pairs": (MultipleNegatives(ignore_duplicates=False), 2),
    "hard": (MultipleNegatives(ignore_duplicates=False), 3),
    "cosine": (CosineRegression(), 2),
    "triplet": (TripletMargin(), 3),
}


@pytest.fixture(autouse=True)
def needs_sentence_transformers():
    """Skips without the package; a given Python is expected to have it."""
    if not os.environ.get("KBERT_PEER_PYTHON") and not importlib.util.find_spec(
        "sentence_transformers"
    ):
        pytest.skip("needs sentence-transformers here or in KBERT_PEER_PYTHON")


@pytest.mark.parity
@pytest.mark.slow
def test_vectors_of_the_published_model_and_of_written_folders(minilm_directory, tmp_path):
    texts = [*STRINGS, *LENGTHS]
    (tmp_path / "texts").write_text(json.dumps(texts), encoding="utf-8")
    settings = [{"dense": 40, "pooling": "max"}, {"pooling": "cls", "normalize": False}]
    made = [load(minilm_directory)]
    folders = [minilm_directory]
    for number, one in enumerate(settings):
        made.append(TextEmbedder.from_pretrained(minilm_directory, **one))
        made[-1].save_pretrained(tmp_path / f"ours-{number}", format="sentence-transformers")
        folders.append(tmp_path / f"ours-{number}")
    run_with_transformers(VECTORS, str(tmp_path / "texts"), *map(str, folders))
    for number, model in enumerate(made):
        found = model.encode(texts)
        np.testing.assert_allclose(found, np.load(tmp_path / f"texts.{number}.npy"), atol=1e-5)
        again = load(tmp_path / f"texts.{number}")
        assert again.get_config() == model.get_config()
        np.testing.assert_allclose(again.encode(texts), found, atol=1e-5)


@pytest.mark.parity
@pytest.mark.slow
def test_losses_and_gradients(minilm_directory, tmp_path):
    columns = [random_texts(9, seed, 9) for seed in range(3)]
    scores = np.linspace(0, 1, 9)
    given = json.dumps([columns, scores.tolist()])
    (tmp_path / "columns").write_text(given, encoding="utf-8")
    printed = run_with_transformers(LOSSES, str(tmp_path / "columns"), str(minilm_directory))
    theirs = json.loads(printed.splitlines()[-1])
    model = load(minilm_directory)
    (weight,) = [
        v for v in model.variables if v.path.endswith("block_2/feed_forward/output/bias")
    ]
    for name, (loss, count) in MADE.items():
        inputs = model.batching.call_inputs(tuple(columns[:count]))
        with tf.GradientTape() as tape:
            value = loss(scores, model(inputs))
        gradient = tape.gradient(value, weight.value)
        assert float(value) == pytest.approx(theirs[name][0], rel=1e-4), name
        np.testing.assert_allclose(gradient, theirs[name][1], atol=1e-6, err_msg=name)


@pytest.mark.slow
def test_correlation_on_sts_b(minilm_directory, shared_data):
    """By sentence-transformers 6.2 on the same file: 0.8672."""
    pairs = read_tuple_examples(shared_data / "glue" / "STS-B" / "dev.tsv")
    vectors = load(minilm_directory).predict(pairs.texts)
    assert embedding_metrics(vectors, pairs.labels)["spearman"] == pytest.approx(0.8672, abs=5e-4)
