"""Serving: SavedModels for TF Serving, written, checked, and run with and without Python."""
