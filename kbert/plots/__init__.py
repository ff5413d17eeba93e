"""Plots of attention, predictions and training curves."""
