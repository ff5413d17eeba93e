"""CTranslate2 translates as kbert does: the same pieces and scores, from the same search."""

import functools
import json

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from kbert.layers.embeddings import sinusoidal_table
from kbert.models.bert import Bert
from kbert.models.encoder_decoders.bert_fused_transformer import BertFusedTransformer
from kbert.models.encoder_decoders.transformer import Transformer
from kbert.tasks.translation.model import Translator
from kbert.tasks.translation.saved_translator import save_ctranslate2, search_arguments
from kbert.text.subword_training import train_subwords
from tests.small_pipelines import TOKENIZER

LINES = [
    "the old man reads a book in the garden",
    "a child plays with the red ball",
    "two women drink coffee near the river",
    "der alte Mann liest ein Buch im Garten",
    "ein Kind spielt mit dem roten Ball",
    "zwei Frauen trinken Kaffee am Fluss",
] * 3
TEXTS = [
    "the old man",
    "two women drink coffee near the red river in the garden",  # more pieces than positions
    "a ball",
    "",
    "☃ child",
    "the red river",
    "ein Kind",
    "man man man man",
]
V, SOURCE_V, D, POSITIONS = 60, 50, 16, 24
SIZES = (V, D, 1, 1, 2, 32, POSITIONS)
NAMES = (
    "vocabulary_size hidden_dim num_encoder_layers num_decoder_layers num_heads intermediate_dim "
    "max_sequence_length"
).split()
LAST_BETAS = ("decoder_norm/beta", "decoder_block_0/feed_forward_residual/layer_norm/beta")
# Options, and what `ending` takes: found by trying until all translations ended, variously.
VARIANTS = {
    "post": ({}, (29, 2.5, -2.0, 4.0)),
    "pre": ({"norm": "pre", "layer_norm_epsilon": 1e-2}, (3, 2.5, 0.0, 4.0)),
    "halves": (
        {"positions": "sinusoidal_halves", "activation": "gelu", "num_encoder_layers": 2},
        (19, 1.5, 0.0, 4.0),
    ),
    "learned": ({"positions": "learned", "activation": "silu"}, (19, 2.5, 2.0, 2.0)),
    "target": (
        {"tied": "target", "source_vocabulary_size": SOURCE_V, "activation": "tanh"},
        (16, 2.5, 0.0, 4.0),
    ),
    "none": (
        {"tied": "none", "output_bias": True, "activation": "gelu_approximate"},
        (25, 1.5, 0.0, 4.0),
    ),
    "bias": ({"output_bias": True, "norm": "pre", "num_heads": 4}, (2, 1.5, 0.0, 2.0)),
}


def ending(transformer, seed, size, push, ramp):
    """Gives a Transformer weights with which translations end, after more or fewer pieces.

    Most random weights say one piece for ever. Here the end's row of the output looks at two waves
    of the positions, one of which rises while the other falls through the first 20.
    """
    draw = np.random.default_rng(seed)
    halves = transformer.positions == "sinusoidal_halves"
    rising, falling = (2, 2 + D // 2) if halves else (4, 5)
    beta = 0.0
    for variable in transformer.trainable_variables:
        shape, path = variable.shape, variable.path
        values = draw.normal(size=shape)
        if path.endswith("kernel"):
            values *= size / np.sqrt(shape[0])
        elif path.endswith("_embedding/embeddings"):
            values *= D**-0.5
            values[:, [rising, falling]] *= 0.2
        elif path.endswith("_positions/embeddings"):
            values = sinusoidal_table(*shape) + 0.05 * values
        elif path.endswith("gamma"):
            values = 1.0 + 0.2 * values
        else:
            values *= 0.3
        if path.endswith(LAST_BETAS):
            beta = values  # what all last states have; the last one counts
        variable.assign(values)
    tied = transformer.tied != "none"
    table = transformer.target_embedding.embeddings if tied else transformer.output_linear.kernel
    values = np.asarray(table).copy()
    row = values[3] if tied else values[:, 3]
    row += push * beta / (beta @ beta)
    row[[rising, falling]] += ramp, -ramp
    table.assign(values)


@pytest.fixture(scope="module")
def subwords(tmp_path_factory):
    """A model of both languages, and one of another size for the source alone."""
    folder = tmp_path_factory.mktemp("subwords")
    joint = train_subwords([LINES], folder / "joint.model", vocabulary_size=V)
    options = {"vocabulary_size": SOURCE_V, "model_type": "unigram"}
    return joint, train_subwords([LINES], folder / "source.model", **options)


def made(subwords, name="post", **settings):
    options, weights = VARIANTS[name]
    transformer = Transformer(**{**dict(zip(NAMES, SIZES)), **options})
    ending(transformer, *weights)
    source = subwords[1] if "source_vocabulary_size" in options else subwords[0]
    # Each row may be as long as the longest: that is all that CTranslate2 can be told.
    settings = {"beam_size": 5, "patience": 1.0, "length_ratio": POSITIONS, **settings}
    return Translator(transformer, source, subwords[0], **settings)


def needed():
    return pytest.importorskip("ctranslate2", reason="needs the extra ctranslate2")


def translated(folder, texts):
    """What a user without kbert gets."""
    source = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.model"))
    translator = needed().Translator(str(folder), device="cpu", intra_threads=1)
    arguments = json.loads((folder / "search.json").read_text())
    return translator.translate_batch(source.encode(texts, out_type=str), **arguments)


def compare(model, folder):
    """All hypotheses, piece by piece, and their scores; returns the lengths of the best."""
    needed()
    save_ctranslate2(model, folder)
    others = translated(folder, TEXTS)
    decoder = sentencepiece.SentencePieceProcessor(model_file=str(folder / "target.model"))
    inputs, lengths, truncated = model.source_inputs(tf.constant(TEXTS))
    assert truncated.numpy().tolist() == [False, True, *[False] * 6]
    found = tf.function(model.search, autograph=False)(inputs, lengths)
    texts = model.target_subwords.detokenize(found.token_ids[:, 0], found.lengths[:, 0])
    pieces, ends = model.target_subwords.pieces, []
    for row, other in enumerate(others):
        if not TEXTS[row]:
            # kbert does not ask the model either; see `Translator.translate`.
            assert other.hypotheses[0] == []
            continue
        for rank in range(model.nbest):
            count = int(found.lengths[row, rank])
            ids = found.token_ids[row, rank, :count].numpy().tolist()
            assert ids[-1] == model.target_subwords.end_id and count < POSITIONS
            assert [pieces[number] for number in ids[:-1]] == other.hypotheses[rank]
            np.testing.assert_allclose(found.scores[row, rank], other.scores[rank], atol=1e-4)
        assert decoder.decode(other.hypotheses[0]) == texts[row].numpy().decode()
        ends.append(int(found.lengths[row, 0]))
    return ends


# What is theirs alone are tables and activations, which the tests of the converter see as arrays.
SLOW = {"learned", "target", "bias"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in VARIANTS],
)
def test_every_variant_translates_alike(name, subwords, tmp_path):
    ends = compare(made(subwords, name, nbest=5), tmp_path / "folder")
    assert len(set(ends)) > 3, "sentences of one length show little"


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"beam_size": 1}, marks=pytest.mark.slow),
        pytest.param({"beam_size": 2, "nbest": 2}, marks=pytest.mark.slow),
        pytest.param({"beam_size": 5, "nbest": 3, "alpha": 0.6}, marks=pytest.mark.slow),
        {"beam_size": 3, "nbest": 2, "patience": 2.0},
        # Without a penalty both stop where the best is known.
        {"beam_size": 5, "alpha": 0.0, "patience": None},
        pytest.param(
            {"beam_size": 2, "length_penalty": "gnmt", "alpha": 0.0, "patience": None},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_every_search_finds_the_same(settings, subwords, tmp_path):
    compare(made(subwords, "bias", **settings), tmp_path / "folder")


@pytest.fixture(scope="module")
def of_two_layers():
    """A Transformer of two layers."""
    transformer = Transformer(**{**dict(zip(NAMES, SIZES)), "num_decoder_layers": 2})
    ending(transformer, 29, 2.5, -2.0, 4.0)
    return transformer


@pytest.fixture(scope="module")
def alignment_of(of_two_layers, subwords):
    """From the number of a layer to what `align` says of it."""

    @functools.cache
    def aligned(layer):
        options = {"beam_size": 1, "alignment_layer": layer, "length_ratio": 0, "length_extra": 13}
        own = Translator(of_two_layers, subwords[0], subwords[0], **options)
        return own.align(tf.constant(TEXTS[:1]))  # sooner than a graph of it is traced

    return aligned


@pytest.mark.parametrize(
    "layer, same_as", [pytest.param(-1, 1, marks=pytest.mark.slow), (0, 0), (1, 1), (None, 1)]
)
def test_the_attention_is_the_alignment(
    layer, same_as, of_two_layers, alignment_of, subwords, tmp_path
):
    model = Translator(of_two_layers, subwords[0], subwords[0], patience=1.0, alignment_layer=layer)
    folder = save_ctranslate2(model, tmp_path / "folder")
    text = TEXTS[0]
    source = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.model"))
    pieces = source.encode([text], out_type=str)
    arguments = {"beam_size": 1, "return_attention": True, "max_decoding_length": 12}
    other = needed().Translator(str(folder), device="cpu", intra_threads=1)
    (found,) = other.translate_batch(pieces, **arguments)
    columns = alignment_of(same_as)
    count = min(int(columns["target_lengths"][0]) - 1, len(found.hypotheses[0]))
    said = [piece.decode() for piece in columns["target_tokens"][0, :count].numpy()]
    assert count > 2 and found.hypotheses[0][:count] == said
    # Neither the source's end, which CTranslate2 leaves out without a new sum, nor the target's.
    wanted = columns["alignment"][0, :count, : len(pieces[0])]
    np.testing.assert_allclose(np.array(found.attention[0])[:count], wanted, atol=1e-5)


def test_only_plain_transformers(subwords, tmp_path):
    bert = Bert(len(TOKENIZER.vocabulary), 8, 1, 2, 16, max_sequence_length=20)
    fused = BertFusedTransformer(*SIZES, bert=bert)
    model = Translator(fused, subwords[0], subwords[0], TOKENIZER)
    message = "`translator` must have a plain Transformer.*Received: a BertFusedTransformer"
    with pytest.raises(ValueError, match=message):
        save_ctranslate2(model, tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


@pytest.mark.parametrize(
    "settings, wanted, notes",
    [
        # What kbert calls alpha; the default of kbert's patience has no counterpart.
        (
            {"alpha": 0.6, "nbest": 2, "patience": None},
            {"beam_size": 5, "num_hypotheses": 2, "length_penalty": 0.6, "patience": 1.0},
            ["max_decoding_length", "patience=None"],
        ),
        ({"patience": 2.0}, {"length_penalty": 1.0, "patience": 2.0}, ["max_decoding_length"]),
        ({"beam_size": 1}, {"beam_size": 1, "length_penalty": 1.0}, ["max_decoding_length"]),
        (
            {"length_penalty": "gnmt", "alpha": 0.6},
            {"length_penalty": 0.0},
            ["max_decoding_length", 'no length penalty "gnmt"'],
        ),
        ({"alpha": 0.0, "patience": None}, {"length_penalty": 0.0}, ["max_decoding_length"]),
        (
            {"alignment_layer": None, "patience": 2.0},
            {"return_scores": True},
            ["max_decoding_length", "one layer for return_attention"],
        ),
    ],
)
def test_what_the_search_is_told(settings, wanted, notes, subwords):
    arguments, found = search_arguments(made(subwords, **settings))
    assert {key: arguments[key] for key in wanted} == wanted
    assert arguments["max_decoding_length"] == arguments["max_input_length"] == POSITIONS
    assert len(found) == len(notes)
    assert all(part in note for part, note in zip(notes, found))
