"""Tasks on token ids: an encoder, a head and a loss, written with Keras alone."""
