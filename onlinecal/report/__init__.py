"""What is shown: pictures, tables, and the catalogue of what there is."""
