"""Code that waits for the issue that needs it: no command, task or table uses it yet.

All of it is PASTA's: `perturbations`, `colour`, `space` and `search` change pictures until a prediction
changes, `perturb` and `pair` show two explanations side by side. It waits for the issue on ratings, whose
questions about robustness need such stimuli.
"""
