"""Measuring in-context transferability: how well a model answers one task shown another's examples.

The measurement of BenTo (Zhao et al. 2024, arXiv 2410.13804, section 3): for every ordered pair of
tasks, questions of the target task are asked behind exemplars of the source task.
"""
