"""The round as a record: the law that is stated, what is drawn, the outcome; and rules that are compiled steps."""
