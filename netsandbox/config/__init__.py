"""Configuration: files are read strictly and merged; each value keeps the file and line it comes from."""
