"""The explorer: a published network that people can touch, in one file, without a server."""
