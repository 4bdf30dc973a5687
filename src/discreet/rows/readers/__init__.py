"""Files, frames and databases, read into codes."""
