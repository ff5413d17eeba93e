"""Small trained layers within a frozen encoder."""
