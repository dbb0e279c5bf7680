"""Tasks as rows of tokens: questions with choices, blanks to fill, texts to write."""
