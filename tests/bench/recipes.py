"""The quality profiles that people really run, as `--quality` takes them."""

FINEWEB = "gopher-repetition@datatrove+gopher@datatrove+c4@fineweb+fineweb@code"
"""FineWeb as it was made."""

PAPERS = "gopher-repetition+gopher+c4+fineweb"
"""The same rules as their papers give them."""

FINEWEB2 = "fineweb2-zh"
