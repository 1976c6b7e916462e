"""What a parameter is: the values that it takes, a row of the table, and a rule between rows.

Which parameters there are is said by the releases that have them, and by ``request``.
"""
