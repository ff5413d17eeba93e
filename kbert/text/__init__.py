"""Text to ids: vocabularies, WordPiece with exact offsets, and packing, as TensorFlow graphs."""
