from kbert.models.feature_names import FEATURES


def test_the_states_of_an_encoder_of_six_blocks():
    # 0 is the embeddings, 6 the last block.
    found = {name: list(range(7))[which] for name, which in FEATURES.items()}
    last_four = [3, 4, 5, 6]
    assert found == {
        "last": [6],
        "second-to-last": [5],
        "last4-sum": last_four,
        "last4-concat": last_four,
        "mix": [0, 1, 2, 3, 4, 5, 6],
    }
