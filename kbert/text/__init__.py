"""Text to token ids: vocabularies, WordPiece with exact offsets, packing, as TensorFlow graphs."""
