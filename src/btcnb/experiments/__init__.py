"""Part IV: the experiments. Only notebooks and the command line import this."""
