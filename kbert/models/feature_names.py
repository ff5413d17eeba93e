"""Names of what a `FeatureBasedEncoder` reads of a frozen encoder, and by which layers."""

# Name -> which of the L + 1 states of a token (the embeddings, and the output of each block).
FEATURES = {
    "last": slice(-1, None),
    "second-to-last": slice(-2, -1),
    "last4-sum": slice(-4, None),
    "last4-concat": slice(-4, None),
    "mix": slice(None),
}
READERS = ("linear", "bilstm")
