"""Recurrent layers: cells with their own gradients, layers over time, attention, readouts."""
