"""What files say about a session: read strictly, laid over one another, each value with the line it comes from."""
