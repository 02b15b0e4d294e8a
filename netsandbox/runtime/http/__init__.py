"""HTTP/1 and the first message of TLS, for every door: pure parsers, and one exchange of a request and its response."""
