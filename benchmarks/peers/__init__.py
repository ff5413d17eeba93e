"""Other libraries' side of the comparisons; nothing of kbert is imported here."""
