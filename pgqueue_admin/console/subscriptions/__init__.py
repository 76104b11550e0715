"""Subscriptions: who gets which events, and what nobody gets."""
