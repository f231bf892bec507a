"""Words, sentences, numbers and dates of the languages that Jiyi reads."""
