"""Pictures, tables, pages, and the catalogue of names."""
