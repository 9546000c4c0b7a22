"""How a model in this process is asked: its texts as tokens, batches, passes."""
