"""`python -m shards view`: shows a dataset as pages to browse and search on this machine.

    command ─▶ server ─▶ overview, documents, document, records, step ──┬─▶ search      shards
    the URL    who may   what a page shows                              ├─▶ audit       Parquet
               ask                                                      ├─▶ similarity  signatures
                                                                        └─▶ histogram   of metrics

`query` parses the address of a request; `html` fills templates/ with escaped values.
"""
