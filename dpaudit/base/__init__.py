"""What every room uses: checks, files, strict reading, numbers and text in words; nothing here knows of privacy."""
