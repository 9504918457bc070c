"""Tests of what is known about each provider's API."""
