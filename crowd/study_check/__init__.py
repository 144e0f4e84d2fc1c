"""The dry run of a study: plans, exposures, stimuli, power and cost before anything is stored or paid."""
