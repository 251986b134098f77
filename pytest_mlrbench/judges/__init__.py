"""How good it is: reviews, panels and the judges that write them."""
