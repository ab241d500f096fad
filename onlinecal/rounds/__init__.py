"""Rules as compiled steps, the players made of them, and players in plain Python."""
