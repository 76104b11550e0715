"""Pure transforms, a file per question: a DataFrame in, a DataFrame out."""
