"""Measurements, as ratios to a floor taken in the same run. These are not tests."""
