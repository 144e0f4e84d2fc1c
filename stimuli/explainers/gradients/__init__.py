"""Methods that read the gradient with respect to the pixels."""
