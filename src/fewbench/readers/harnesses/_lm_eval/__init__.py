"""Parts of the reader of lm-evaluation-harness logs; `lm_eval` joins them."""
