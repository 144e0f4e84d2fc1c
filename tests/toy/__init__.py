"""A protocol that the core does not know; it proves that a new protocol changes no shared code.

People sort texts into three piles and see two pictures beside each text. There is no baseline, a slot mixes
conditions, every second trial has no right answer, and two lanes share the people. One kind, one gate, one
plugin, one reporter, one observer.
"""
