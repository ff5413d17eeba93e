"""A small classifier with random weights, and its export; made once a session."""

import os
import shutil
import string
from pathlib import Path

import keras
import pytest

from kbert.models.bert import Bert
from kbert.serving.export.export import export
from kbert.serving.loading.exported import Exported, load_export
from kbert.serving.loading.session_loader import build_session_loader
from kbert.tasks.classification.model import Classifier
from kbert.tasks.pretraining.model import MaskedLanguageModel
from kbert.text.vocabulary import Vocabulary
from kbert.text.wordpiece.wordpiece import WordPiece
from tests.serving.tiny_models import Meter
from tests.small_pipelines import small_masked_language_model

LETTERS = [*string.ascii_lowercase, *(f"##{letter}" for letter in string.ascii_lowercase)]
SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TOKENS = [*SPECIAL_TOKENS, "a", "film", "good", "##ness", "ä", "中", *"!?.,"]


def small_classifier(pair: bool = False, layers: int = 1) -> Classifier:
    """Layers of width 16; weights large enough that texts get different answers."""
    keras.utils.set_random_seed(7)
    vocabulary = Vocabulary(dict.fromkeys([*TOKENS, *LETTERS]))
    encoder = Bert(len(vocabulary), 16, layers, 2, 32, 32, initializer_range=0.3)
    model = Classifier(encoder, WordPiece(vocabulary), ["no", "yes", "ja"], 24, pair=pair)
    head = model.sequence_head.classifier
    head.kernel.assign(keras.random.normal(head.kernel.shape, seed=3))
    return model


@pytest.fixture(scope="session")
def classifier() -> Classifier:
    """A classifier of single texts: three classes, at most 24 tokens."""
    return small_classifier()


@pytest.fixture(scope="session")
def pair_classifier() -> Classifier:
    """A classifier of pairs of texts; of two layers, unlike the others."""
    return small_classifier(pair=True, layers=2)


@pytest.fixture(scope="session")
def exported_path(classifier: Classifier, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The version folder of its export; tests only read it."""
    return export(classifier, tmp_path_factory.mktemp("models"), "small")


@pytest.fixture(scope="session")
def exported(exported_path: Path) -> Exported:
    """The export, loaded back into Python."""
    return load_export(exported_path)


@pytest.fixture(scope="session")
def masked_model() -> MaskedLanguageModel:
    """A model that fills masks and says whether texts follow each other."""
    return small_masked_language_model()


@pytest.fixture(scope="session")
def masked_path(
    masked_model: MaskedLanguageModel, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The version folder of its export; tests only read it."""
    return export(masked_model, tmp_path_factory.mktemp("masked"), "words", max_batch_size=1)


@pytest.fixture(scope="session")
def masked(masked_path: Path) -> Exported:
    """That export, loaded back into Python."""
    return load_export(masked_path)


@pytest.fixture(scope="session")
def meter_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The version folder of an export that is made and read within a second. Only to be read."""
    return export(Meter(), tmp_path_factory.mktemp("meters"), max_batch_size=4)


@pytest.fixture
def meter(meter_path: Path, tmp_path: Path) -> Path:
    """A copy of it, to plant faults in."""
    return Path(shutil.copytree(meter_path, tmp_path / "meter" / "1"))


@pytest.fixture(scope="session")
def texts() -> list[str | bytes]:
    """What users and attackers send: nothing, NUL, broken UTF-8, and more than 24 tokens."""
    return [
        "a good film",
        "",
        "   \t\n",
        "goodness!",
        b"a\0b \0",
        b"\xff\xfe film \xc3",
        b"good \xed\xa0\x80 film",
        "ÄÄ 中中中 \U0001f600",
        "[CLS] [SEP] [MASK]",
        "film " * 40,
        "x" * 300,
        "A GOOD, GOOD FILM?",
    ]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the loader of SavedModels without Python is built, once, where a compiler is."""
    folder = tmp_path_factory.mktemp("programs")
    if shutil.which(os.environ.get("CC") or "gcc"):
        build_session_loader(folder)
    return folder
