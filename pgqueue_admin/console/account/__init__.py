"""account"""
