"""Which passes are needed, shared between methods; runs them in full batches."""
