import dataclasses

import pytest

from kbert.decoding.scores import LENGTH_PENALTIES
from kbert.layers.vocabulary_output import TIED
from kbert.models.encoder_decoders.transformer import POSITIONS, Transformer
from kbert.text.subword_training import MIN_CHARACTER_COVERAGE, MODEL_TYPES, NORMALIZATIONS
from kbert.training.config.translation_config import MONITORED, TranslationConfig

LEAST = {"train": "a.tsv", "output": "o"}


def config(**values):
    return TranslationConfig.from_dict({**LEAST, **values})


def test_the_defaults_of_the_training_are_the_papers():
    # Vaswani et al. 2017, sections 5.3 and 5.4: warm-up 4000, smoothing 0.1, dropout 0.1, the rate
    # follows from the width; table 3: LayerNorm after each sublayer.
    made = config()
    assert (made.warmup_steps, made.label_smoothing, made.dropout) == (4000, 0.1, 0.1)
    assert made.learning_rate is None and made.clip is None and made.weight_decay == 0
    assert (made.norm, made.positions, made.tied) == ("post", "sinusoidal", "auto")


def test_it_goes_to_a_dict_and_back():
    made = config(validation_source="v.en", validation_target="v.de", average=3, source_column=0)
    assert TranslationConfig.from_dict(made.to_dict()) == made


def test_the_words_are_those_of_the_rooms_below():
    """They are written anew, since those rooms load Keras, and --help must not."""
    accepts = {f.name: f.metadata["kind"].accepts for f in dataclasses.fields(TranslationConfig)}
    for key, words in (
        ("subword_type", MODEL_TYPES),
        ("normalization", NORMALIZATIONS),
        ("length_penalty", LENGTH_PENALTIES),
        ("tied", TIED),
        ("positions", set(POSITIONS) - {"sinusoidal_halves"}),  # of other libraries' weights
    ):
        assert all(map(accepts[key], words)), key
        assert not accepts[key]("other")
    assert accepts["character_coverage"](MIN_CHARACTER_COVERAGE)
    assert not accepts["character_coverage"](MIN_CHARACTER_COVERAGE - 0.01)
    made = Transformer(10, 4, 1, 1, 1, 4)
    assert config().max_sequence_length == made.max_sequence_length


@pytest.mark.parametrize(
    "values, message",
    [
        ({"epochs": 0}, "`epochs` must be a whole number, at least 1. Received: epochs=0"),
        ({"batch_tokens": 0}, "`batch_tokens` must be a whole number, at least 1."),
        ({"size": "huge"}, "`size` must be one of tiny, small, base, big"),
        ({"monitor": "rouge"}, f"`monitor` must be one of {', '.join(MONITORED)}"),
        ({"max_ratio": 0.5}, "`max_ratio` must be a number, at least 1"),
        ({"beam-size": 3}, "Received: 'beam-size'. Did you mean `beam_size`"),
        ({"task": "classification"}, "`task` must be one of translation"),
    ],
)
def test_what_cannot_be_is_refused_by_name(values, message):
    with pytest.raises(ValueError) as raised:
        config(**values)
    assert message in str(raised.value)


def test_every_field_says_what_it_is_for():
    panels = ("Data", "Subwords", "Model", "BERT", "Training", "Search", "Run")
    for field in dataclasses.fields(TranslationConfig):
        assert field.metadata["help"].endswith((".", ",")), field.name
        assert field.metadata["panel"] in panels


def test_which_architectures_there_are():
    assert config().architecture == "transformer"
    for name in ("rnn", "bahdanau", "convs2s"):
        assert config(architecture=name).architecture == name
        with pytest.raises(ValueError, match="`architecture` must be transformer or bert-fused wi"):
            config(architecture=name, bert="encoder")
    message = "`architecture` must be one of transformer, bert-fused, rnn, bahdanau, convs2s. Recei"
    with pytest.raises(ValueError, match=message):
        config(architecture="lstm")
    with pytest.raises(ValueError, match="`bert` must be given with architecture=bert-fused"):
        config(architecture="bert-fused")
    assert config(architecture="bert-fused", bert="encoder").bert == "encoder"
