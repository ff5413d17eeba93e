import pytest

from kbert.tasks.embedding.options import EmbeddingOptions


def test_the_keys_and_their_kinds():
    made = EmbeddingOptions(pooling="max", dense=8, loss="triplet", chunk_rows=4)
    assert (made.pooling, made.dense, made.loss, made.chunk_rows) == ("max", 8, "triplet", 4)
    for values, message in (
        ({"pooling": "last"}, "`pooling` must be one of mean, cls, max"),
        ({"dense": 0}, "`dense` must be a whole number, at least 1"),
        ({"loss": "contrastive"}, "`loss` must be one of multiple-negatives, cosine, triplet"),
        ({"chunk_rows": 0}, "`chunk_rows` must be a whole number, at least 1"),
    ):
        with pytest.raises(ValueError, match=message):
            EmbeddingOptions(**values)
