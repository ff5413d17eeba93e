"""The adapters and heads that come with kbert: small, whole, and right on the samples."""

import pytest

from kbert.checkpoints.arrays.checkpoint_files import open_safetensors
from kbert.checkpoints.pretrained import PRETRAINED, SHIPPED, resolve
from kbert.data.entities.tagged_sentences import read_conll
from kbert.data.samples import sample_path
from kbert.metrics.entities import entity_metrics
from kbert.storage.json_files import read_json_object
from kbert.tasks.load import load

# Bytes of all files together, as promised in the documentation.
MOST = {"minilm-squad": 8_000_000, "minilm-ner": 2_000_000, "minilm-sentiment": 5_000_000}


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_small_and_whole(name):
    folder = resolve(name)
    files = {file.name: file.stat().st_size for file in folder.iterdir()}
    assert set(files) == {"README.md", "adapters.safetensors", "kbert_adapters.json"}
    assert sum(files.values()) <= MOST[name]
    about = read_json_object(folder / "kbert_adapters.json")
    assert about["base"] in PRETRAINED
    with open_safetensors(folder / "adapters.safetensors") as tensors:
        groups = {key.partition("/")[0] for key in tensors.shapes}
        changed = {key for key in tensors.shapes if key.startswith("arrays/")}
    assert groups - {"arrays"} == {"adapters", "heads"}
    # Of the encoder, classification trains the pooler too.
    assert all("pooler" in key for key in changed)
    card = (folder / "README.md").read_text(encoding="utf-8")
    for part in ("Data", "Licence", "Recipe", "Scores"):
        assert f"## {part}" in card


def test_opinions(minilm_directory):
    """Sentences of ours: plain ones, and some whose words alone say the opposite."""
    positive = [
        "A warm, funny and moving film.",
        "I would gladly see it again.",
        "Nothing about this wonderful story is wasted.",
        "The cast is superb and the music is lovely.",
        "Never dull for a minute.",
    ]
    negative = [
        "Two hours too long, and dull.",
        "A waste of money and of talent.",
        "It is not funny, not clever and not worth your time.",
        "The plot makes no sense and the acting is wooden.",
        "I wanted to like it, but it bored me.",
    ]
    answers = load("minilm-sentiment").answers([*positive, *negative])
    right = ["positive"] * len(positive) + ["negative"] * len(negative)
    # Accuracy is 0.89 on SST-2's dev set; a random head has about half of these.
    assert sum(one["label"] == label for one, label in zip(answers, right, strict=True)) >= 9


@pytest.mark.slow
def test_names_of_the_samples(minilm_directory):
    sentences = read_conll(sample_path("entities/sentences.conll"))
    model = load("minilm-ner")
    found = entity_metrics(sentences.tags, model.predict_tags(sentences.words), "bio")
    assert found["f1"] > 0.6
    types = {one["label"] for several in model.answers(sentences.texts) for one in several}
    assert types == {"LOC", "MISC", "ORG", "PER"}
