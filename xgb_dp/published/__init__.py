"""What only reproductions of published systems and rarely used features need.

It stands above ``accounting`` and enters it by registration: importing a module of this package
makes its events known to the reader of ledgers and to the accountants, and its accountants known by
name. ``accounting/tenants.py`` says which module to import for a name.
"""
