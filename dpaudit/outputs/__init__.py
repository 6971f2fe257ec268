"""What runs returned, in canonical form: columns of numbers and tokens, whatever a mechanism gives."""
