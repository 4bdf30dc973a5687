"""Engines that count codes exactly."""
