"""What is asked of a network, and how answers are laid out.

`evidence` reads it in any form, `question` adds do= and soft evidence, `support` decides what is impossible, and
`reduction` absorbs what is observed. `printing` shows results, `batches` picks rows of them.
"""
