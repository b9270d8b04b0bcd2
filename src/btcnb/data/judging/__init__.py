"""Judging links, clusters and labels against known owners and public names."""
