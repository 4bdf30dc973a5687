"""Rows as people hold them: read, checked, and counted exactly; nothing of it leaves but through the airlock."""
