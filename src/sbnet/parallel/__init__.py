"""Work on blocks of rows: threads, processes, any executor, Dask; the same bits from each, with progress.

`blocks` maps a function over blocks of rows, `parcels` lets what all blocks share travel once, and `lazy` knows Dask's
tables.
"""
