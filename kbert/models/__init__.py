"""Complete networks on token ids, written with Keras alone."""
