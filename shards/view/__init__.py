"""`python -m shards view`: a dataset to leaf through and search, as pages on this machine.

    command ─▶ server ─▶ overview, documents, document, records, step ──┬─▶ search      shards
    the URL    who may   what a page shows                              ├─▶ audit       Parquet
               ask                                                      ├─▶ similarity  signatures
                                                                        └─▶ histogram   of metrics

`query` is what a request asks for, `html` fills templates/, whose values are escaped.
"""
