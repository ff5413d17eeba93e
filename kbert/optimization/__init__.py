"""Losses, learning-rate schedules and optimizers."""
