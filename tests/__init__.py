"""The tests of kbert; the folders mirror the rooms of the package."""
