"""osproc"""
