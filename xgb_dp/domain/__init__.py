"""The declared contents of rows: schema files, options, policies, and the files read by them."""
