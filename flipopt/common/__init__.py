"""What every room uses: errors, checks of arguments, files from strangers, columns, progress."""
