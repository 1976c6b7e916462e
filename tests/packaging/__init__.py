"""What was built, and whether it is whole: wheels, the installation, the loaded library."""
