"""From a definition to a draft: items chosen, the model asked, stimuli requested and checked."""
