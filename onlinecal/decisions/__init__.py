"""Decision tasks, and what those who trust a forecast come to regret."""
