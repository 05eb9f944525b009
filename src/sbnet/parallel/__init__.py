"""A function of a block of rows, mapped over blocks: in threads, processes or any executor, the same bits from each.

`blocks` maps, with progress; `parcels` lets what all blocks share travel once; in `lazy`, the blocks are the partitions
of a Dask collection, and tasks go where they lie.
"""
