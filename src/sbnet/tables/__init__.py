"""Any table as columns of cells, and which value of a column means 1.

`frames` reads arrays and data frames of any library, `reading` files and standard input, block by block; `codings`
decides what the values of a two-valued column mean, with the words of `yes_no`; `several` knows columns that are
several variables.
"""
