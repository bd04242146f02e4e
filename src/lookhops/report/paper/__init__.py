"""The page that sets our runs beside the numbers of the paper."""
