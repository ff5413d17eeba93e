import numpy as np
import pytest

from kbert.architectures import ENCODER_DECODERS
from kbert.models.encoder_decoders.bert_fused_transformer import BertFusedTransformer
from kbert.models.weights import encoder_arrays
from kbert.optimization.schedules import InverseSquareRootDecay
from kbert.text.subword import Subword
from kbert.text.subword_training import train_subwords
from kbert.training.translation.model import build_translator, compile_translator, load_warm_start
from tests.models.encoder_decoders import running_sums
from tests.training.tiny_translations import SOURCES, TARGETS


@pytest.fixture(scope="module")
def joint(tmp_path_factory):
    path = tmp_path_factory.mktemp("subwords") / "joint.model"
    return train_subwords([SOURCES, TARGETS], path, vocabulary_size=46)


@pytest.fixture(scope="module")
def german(tmp_path_factory):
    path = tmp_path_factory.mktemp("subwords") / "german.model"
    return train_subwords([TARGETS], path, vocabulary_size=25)


def test_sizes_and_settings_reach_the_model(tiny_pairs, tmp_path, joint):
    values = {"num_heads": None, "hidden_dim": 32, "norm": "pre", "dropout": 0.2, "alpha": 0.5}
    built = build_translator(tiny_pairs.config(tmp_path, **values, nbest=2), (joint, joint))
    model, inner = built.model, built.model.transformer
    assert (inner.hidden_dim, inner.num_heads, inner.intermediate_dim) == (32, 4, 32)  # tiny: 4
    assert (inner.norm, inner.dropout, inner.tied, inner.max_sequence_length) == (
        *("pre", 0.2, "all"),
        24,
    )
    assert (model.beam_size, model.nbest, model.alpha, model.label_smoothing) == (2, 2, 0.5, 0.1)
    assert built.warm_start is None and inner.source_vocabulary_size is None


def test_another_architecture_takes_the_options_that_it_has(
    tiny_pairs, tmp_path, joint, monkeypatch
):
    name = f"{running_sums.__name__}.RunningSums"
    monkeypatch.setitem(ENCODER_DECODERS, running_sums.NAME, name)
    missing = ("num_encoder_layers", "num_decoder_layers", "num_heads", "intermediate_dim")
    values = {**dict.fromkeys(missing), "architecture": running_sums.NAME}
    config = tiny_pairs.config(tmp_path, **values)
    inner = build_translator(config, (joint, joint)).model.transformer
    assert isinstance(inner, running_sums.RunningSums)
    assert (inner.hidden_dim, inner.vocabulary_size, inner.max_sequence_length) == (16, 46, 24)
    config = tiny_pairs.config(tmp_path, **{**values, "num_heads": 2})
    message = "`num_heads` must be left out with architecture=running-sums, which has none"
    with pytest.raises(ValueError, match=message):
        build_translator(config, (joint, joint))


def test_two_subword_models_are_two_embeddings(tiny_pairs, tmp_path, joint, german):
    inner = build_translator(tiny_pairs.config(tmp_path), (joint, german)).model.transformer
    assert (inner.vocabulary_size, inner.source_vocabulary_size, inner.tied) == (25, 46, "target")
    # Two models with as many pieces are still two.
    other = Subword(joint.model)
    inner = build_translator(tiny_pairs.config(tmp_path), (joint, other)).model.transformer
    assert inner.tied == "target" and inner.source_embedding is not inner.target_embedding
    with pytest.raises(ValueError, match="`tied` must be target or none where source and target"):
        build_translator(tiny_pairs.config(tmp_path, tied="all"), (joint, other))


def test_options_of_an_architecture(tiny_pairs, tmp_path, joint):
    given = {"architecture": "bahdanau", "hidden_dim": 8, "score": "dot", "encoder_dim": 4}
    # The fixture's sizes are a Transformer's.
    cleared = {"norm": "post", "num_encoder_layers": None, "num_decoder_layers": None}
    cleared |= {"num_heads": None, "intermediate_dim": None}
    config = tiny_pairs.config(tmp_path, **cleared, **given)
    inner = build_translator(config, (joint, joint)).model.transformer
    assert (inner.architecture, inner.score, inner.hidden_dim) == ("bahdanau", "dot", 8)
    assert inner.dropout == config.dropout and inner.tied == "all"
    wrong = config.with_values(kernel_width=5)
    with pytest.raises(ValueError, match="`kernel_width` must be left out with architecture=bahd"):
        build_translator(wrong, (joint, joint))


def test_the_optimizer_is_that_of_the_paper(tiny_pairs, tmp_path, joint):
    model = build_translator(tiny_pairs.config(tmp_path), (joint, joint)).model
    compile_translator(model, tiny_pairs.config(tmp_path, accumulation_steps=3, clip=2.0))
    optimizer = model.optimizer
    assert (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon) == (0.9, 0.98, 1e-9)
    assert (optimizer.gradient_accumulation_steps, optimizer.global_clipnorm) == (3, 2.0)
    # Vaswani et al. 2017, equation 3, at the first update: 16^-0.5 * 1 * 10^-1.5.
    compile_translator(model, tiny_pairs.config(tmp_path, learning_rate=None))
    rate = model.optimizer.get_config()["learning_rate"]["config"]
    assert float(InverseSquareRootDecay(**rate)(0)) == pytest.approx(0.25 * 10**-1.5)
    # Two epochs of 30 updates, the second of which cools down: half of it is left at update 46.
    cooled = tiny_pairs.config(tmp_path, epochs=2, cooldown_epochs=1, learning_rate=0.5)
    compile_translator(model, cooled, 30)
    rate = InverseSquareRootDecay(**model.optimizer.get_config()["learning_rate"]["config"])
    assert float(rate(45)) == pytest.approx(0.5 * (cooled.warmup_steps / 46) ** 0.5 / 2)


def test_a_warm_start_takes_all_but_the_rates(finished_translation, tiny_pairs, tmp_path, tiny):
    files = {"train": str(tiny_pairs.folder / "train.tsv"), "output": str(tmp_path)}
    made = tiny_pairs.config(tmp_path).from_dict
    config = made({**files, "warm_start": str(finished_translation), "dropout": 0.4})
    warm = load_warm_start(config)
    subwords = (warm.source_subwords, warm.target_subwords)
    built = build_translator(config, subwords, warm)
    inner = built.model.transformer
    assert (inner.hidden_dim, inner.max_sequence_length, inner.dropout) == (16, 24, 0.4)
    expected = encoder_arrays(warm.transformer)
    assert built.warm_start.loaded == sorted(expected) and built.warm_start.new == []
    for name, array in encoder_arrays(inner).items():
        np.testing.assert_array_equal(array, expected[name], name)
    fused = build_translator(config.with_values(bert=str(tiny.encoder)), subwords, warm)
    assert isinstance(fused.model.transformer, BertFusedTransformer)
    assert fused.model.transformer.drop_net == 1.0 and fused.warm_start.mismatched == []
    assert fused.warm_start.loaded == sorted(expected)
    fused.model.save_pretrained(tmp_path / "fused")
    with pytest.raises(ValueError, match="`warm_start` must be a translator without BERT.*one wit"):
        load_warm_start(config.with_values(warm_start=str(tmp_path / "fused")))
    assert load_warm_start(config.with_values(warm_start=None)) is None


def test_another_kind_of_run_is_no_start(finished_run, tiny_pairs, tmp_path, joint):
    made = tiny_pairs.config(tmp_path).from_dict
    files = {"train": "a.tsv", "output": str(tmp_path)}
    with pytest.raises(ValueError, match="`warm_start` must be a translator.*, Classifier"):
        load_warm_start(made({**files, "warm_start": str(finished_run)}))
    # But a run of another kind has an encoder.
    config = tiny_pairs.config(tmp_path, bert=str(finished_run))
    assert build_translator(config, (joint, joint)).model.transformer.bert.hidden_dim == 16
