"""What `btcnb refine` does: read a source, refine its clusters, write tables and a report."""
