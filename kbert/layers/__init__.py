"""The pieces of a Transformer as Keras layers, written with `keras.ops` alone."""
