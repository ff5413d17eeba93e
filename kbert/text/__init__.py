"""Text to ids: vocabularies, WordPiece with exact offsets, and packing, all as TensorFlow graphs."""
