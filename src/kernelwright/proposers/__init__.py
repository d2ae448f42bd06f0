"""Proposers drive the Lab: each is one file and one function."""
