"""Decision tasks, and the regret of decision makers that trust a forecast."""
