"""Storage: atomic writes of files and folders, and checksums."""
