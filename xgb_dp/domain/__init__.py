"""The declared domain of the data: schema files, options, policies, and reading of data files."""
