import logging

import numpy as np
import pytest

from kbert.models.weights import encoder_arrays
from kbert.pipelines.tokenizers import tokenizer_of_file
from kbert.tasks.load import load
from kbert.text.vocabulary import Vocabulary
from kbert.text.wordpiece.wordpiece import WordPiece
from kbert.training.pretraining.model import build_pretrained, compile_pretrained
from tests.training.tiny_corpus import TinyCorpus
from tests.training.tiny_runs import TOKENS, write_encoder


@pytest.fixture(scope="module")
def tiny_corpus(tmp_path_factory):
    return TinyCorpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def tokenizer(tiny_corpus):
    return tokenizer_of_file(tiny_corpus.vocabulary, special_tokens_in_text=True)


@pytest.fixture(scope="module")
def encoder(tiny_corpus):
    return write_encoder(tiny_corpus.folder, tiny_corpus.vocabulary)


@pytest.mark.parametrize("objective", ["mlm_nsp", "lm"])
def test_a_new_model(tiny_corpus, tokenizer, tmp_path, objective):
    config = tiny_corpus.config(tmp_path, objective=objective, size="tiny", dropout=0.3)
    model = build_pretrained(config, tokenizer)
    encoder = model.encoder
    assert (encoder.num_layers, encoder.hidden_dim, encoder.num_heads) == (1, 16, 2)
    assert (encoder.vocabulary_size, encoder.max_sequence_length) == (len(TOKENS), 24)
    assert (encoder.dropout, encoder.attention_dropout) == (0.3, 0.1)
    assert encoder.causal == (objective == "lm") and model.objective == objective
    assert (model.max_sequence_length, model.stride) == (20, 5)
    assert model.tokenizer.lowercase and model.tokenizer.special_tokens_in_text
    sizes = {key: None for key in ("num_layers", "hidden_dim", "num_heads", "intermediate_dim")}
    tiny = build_pretrained(tiny_corpus.config(tmp_path, size="tiny", **sizes), tokenizer).encoder
    # BERT-Tiny of Turc et al. 2019
    assert (tiny.num_layers, tiny.hidden_dim, tiny.intermediate_dim) == (2, 128, 512)


def going_on(tiny_corpus, output, encoder, **others):
    names = ("num_layers", "hidden_dim", "num_heads", "intermediate_dim", "positions", "vocabulary")
    own = {**{name: None for name in names}, "encoder": str(encoder), **others}
    return tiny_corpus.config(output, **own)


def test_an_encoder_gets_the_heads_that_it_lacks(tiny_corpus, encoder, tmp_path, caplog):
    model = build_pretrained(going_on(tiny_corpus, tmp_path, encoder, dropout=0.2), None)
    assert "encoder has no cls.predictions, " in caplog.text
    before = load(model.save_pretrained(tmp_path / "before"))
    assert model.encoder.dropout == before.encoder.dropout == 0.2
    # And a pretrained one keeps its own, but for those that the objective does not have.
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        before = tmp_path / "before"
        again = build_pretrained(going_on(tiny_corpus, tmp_path, before), None)
        alone = build_pretrained(going_on(tiny_corpus, tmp_path, before, objective="mlm"), None)
    assert not caplog.text
    for other in (again, alone):
        for name, array in encoder_arrays(model.encoder).items():
            np.testing.assert_array_equal(encoder_arrays(other.encoder)[name], array)
        for one, same in zip(model.token_head.weights, other.token_head.weights, strict=True):
            np.testing.assert_array_equal(one, same)
    assert alone.objective == "mlm" and again.objective == "mlm_nsp"


def test_what_does_not_fit(tiny_corpus, encoder, tmp_path):
    config = going_on(tiny_corpus, tmp_path, encoder, max_sequence_length=25)
    with pytest.raises(ValueError, match="`max_sequence_length` must be .* 24., the encoder"):
        build_pretrained(config, None)
    with pytest.raises(ValueError, match="without .MASK."):
        vocabulary = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"])
        tokenizer = WordPiece(vocabulary, special_tokens_in_text=True)
        build_pretrained(tiny_corpus.config(tmp_path), tokenizer)


def test_the_optimizer(tiny_corpus, tokenizer, tmp_path):
    config = tiny_corpus.config(
        tmp_path, steps=100, warmup_steps=20, learning_rate=0.1, weight_decay=0.05, clip=2.0
    )
    model = build_pretrained(config, tokenizer)
    compile_pretrained(model, config)
    optimizer = model.optimizer
    # By hand: half of the peak in the middle of the rise and of the fall, 0 at the end.
    rates = [float(optimizer._learning_rate(step)) for step in (10, 20, 60, 100)]
    assert rates == pytest.approx([0.05, 0.1, 0.05, 0.0])
    assert (optimizer.beta_1, optimizer.beta_2, optimizer.decay) == (0.9, 0.999, 0.05)
    assert optimizer.global_clipnorm == 2.0


@pytest.mark.parametrize("architecture", ["albert", "distilbert", "electra"])
def test_a_new_model_of_another_architecture(tiny_corpus, tokenizer, tmp_path, architecture):
    config = tiny_corpus.config(tmp_path, objective="mlm", architecture=architecture)
    assert build_pretrained(config, tokenizer).encoder.architecture == architecture
    assert build_pretrained(config, tokenizer).encoder.num_layers == 1


def test_a_causal_model_of_an_architecture_that_cannot_be(tiny_corpus, tokenizer, tmp_path):
    config = tiny_corpus.config(tmp_path, objective="lm", architecture="distilbert")
    with pytest.raises(ValueError, match="`causal` must be False for a DistilBert"):
        build_pretrained(config, tokenizer)
