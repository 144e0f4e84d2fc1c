"""Copies of pictures, changed a little or much: PASTA's perturbations, and the search for the one that keeps
or spoils a prediction."""
