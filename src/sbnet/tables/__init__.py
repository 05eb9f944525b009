"""Any table as columns of cells, and which value of a column means 1.

`frames` reads arrays and data frames of any library, `reading` files and standard input, block by block; `schema`
says which columns are what variables, with the kinds of `kinds` and the words of `yes_no`.
"""
