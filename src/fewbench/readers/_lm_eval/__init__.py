"""Parts of the reader of lm-evaluation-harness logs; `fewbench.readers.lm_eval` joins them."""
