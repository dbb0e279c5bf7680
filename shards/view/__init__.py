"""`python -m shards view`: a dataset to leaf through and search, as pages on this machine.

    command ─▶ server ─▶ pages ──┬─▶ kept      documents in shards: by number, columns, words
    the URL    who may   what    ├─▶ audit     records in Parquet: by verdict, reason, metric
               ask       is seen ├─▶ alike     equal and similar texts, by signatures
                                 └─▶ hidden    what was removed and is not to be shown

`address` is what a request asks for, `markup` HTML that obeys nothing, `wording` two languages.
HTML is made by functions that escape whatever they did not make themselves: the core of this
package needs no library of templates, and a text that is forgotten cannot become an element.
"""
