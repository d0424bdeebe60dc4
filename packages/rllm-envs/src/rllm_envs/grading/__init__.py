"""Compare a model's answer with a reference: exactly where possible, symbolically where not."""
