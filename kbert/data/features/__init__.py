"""States of frozen encoders: computed once, kept in files, and batches of them."""
