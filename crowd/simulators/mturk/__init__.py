"""A Mechanical Turk that lives on this machine, made from the service model of botocore."""
