"""What a model is asked, as rows of tokens: questions with choices, blanks to fill, texts."""
