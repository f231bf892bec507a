"""Calendar arithmetic and the search for dates, without the words of any language."""
