"""`python -m shards view`: a dataset to leaf through and search, as pages on this machine.

command ─▶ server ─▶ pages ─┬─▶ kept        documents in shards: by number, columns, words
the URL    who may   what    ├─▶ audit       records in Parquet: by verdict, reason, metric
ask       is seen ├─▶ alike       equal and similar texts, by signatures
└─▶ hidden      what was removed and is not to be shown
address: what a request asks for; markup: HTML that obeys nothing; wording: two languages
"""
