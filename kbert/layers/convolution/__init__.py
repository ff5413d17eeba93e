"""Gated convolutions over time, with weight normalization."""
