"""What the text of a file tells before a row is read: how numbers are written, where the header is, what is wrong."""
