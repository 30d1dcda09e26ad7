"""poca keeps a folder of podcast episodes in step with their feeds."""

__version__ = "2.0.0"
